"""A desktop program on a virtual display (Xvfb), with xdotool for mouse and keyboard and mss for screenshots.

The form `contacts` is a Tk program. It reports the positions of its widgets, for scripted agents only.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from presage import PresageError
from presage.core.errors import install
from presage_gui.action import Action, Kind, Point
from presage_gui.environment import Environment, Outcome
from presage_gui.oracles.element import Element
from presage_gui.oracles.right import Right
from presage_gui.screen import Box, Screen

SIZE = (480, 320)
PROGRAMS = ("contacts",)
NEEDED = {"Xvfb": "xvfb", "xdotool": "xdotool", "wish": "tk"}
"""The required programs, and the Debian packages that contain them."""
_PATIENCE = 10.0
_NAMES = ("Ada Lovelace", "Grace Hopper", "Alan Turing", "Emmy Noether", "Mary Somerville")
_CITIES = ("London", "Göttingen", "Paris", "New York", "Turin")
_KEYS = {
    "enter": "Return", "tab": "Tab", "escape": "Escape", "backspace": "BackSpace", "delete": "Delete",
    "space": "space", "home": "Home", "end": "End", "pageup": "Prior", "pagedown": "Next", "up": "Up", "down": "Down",
    "left": "Left", "right": "Right", "insert": "Insert", "meta": "super",
    **{f"f{number}": f"F{number}" for number in range(1, 13)},
}  # fmt: skip


def _keysym(key: str) -> str:
    """The name of a key for xdotool, which knows letters and digits as themselves, and other characters by code point.

    >>> _keysym("enter"), _keysym("a"), _keysym("/")
    ('Return', 'a', 'U002F')
    """
    return _KEYS.get(key) or (f"U{ord(key):04X}" if len(key) == 1 and not key.isalnum() else key)


def missing() -> list[str]:
    """Return the required Debian packages that are not installed."""
    return [package for program, package in NEEDED.items() if not shutil.which(program)]


class Desktop(Environment):
    """Runs one program on a virtual display of its own."""

    def __init__(self, program: str = "contacts") -> None:
        if program not in PROGRAMS:
            raise PresageError(f"there is no program '{program}'; there is: {', '.join(PROGRAMS)}")
        if lacking := missing():
            raise PresageError(f"a desktop needs programs that are not here: apt-get install {' '.join(lacking)}")
        try:
            import mss
        except ImportError:
            raise PresageError(f"a desktop needs mss: {install('gui')}") from None
        self._program: subprocess.Popen[bytes] | None = None
        self._wanted = ("", "", False)
        with contextlib.ExitStack() as stack:
            self._folder = Path(tempfile.mkdtemp(prefix="presage-desktop-"))
            stack.callback(shutil.rmtree, self._folder, ignore_errors=True)
            server, self._display = _start_xvfb()
            stack.callback(_end, server)
            self._camera = mss.MSS(display=self._display)
            stack.callback(self._camera.close)
            self._open = stack.pop_all()

    def reset(self, seed: int) -> str:
        rng = random.Random(seed)
        self._wanted = (rng.choice(_NAMES), rng.choice(_CITIES), rng.random() < 0.5)
        name, city, news = self._wanted
        self._stop()
        for file in self._folder.iterdir():
            file.unlink()
        script = Path(__file__).parent / "programs" / "contacts.tcl"
        self._program = subprocess.Popen(
            ["wish", str(script), str(self._folder)], env=self._variables(), stderr=subprocess.DEVNULL
        )
        end = time.monotonic() + _PATIENCE
        while not (self._folder / "parts").exists():
            if time.monotonic() > end or self._program.poll() is not None:
                raise PresageError("the program does not start on the virtual display")
            time.sleep(0.05)
        self._xdotool("mousemove", "470", "310")
        self._settle()
        letter = "Send them the newsletter, then save" if news else "Save"
        self.goal = f'Add the contact "{name}" from "{city}". {letter} it.'
        return self.goal

    def screen(self) -> Screen:
        shot = self._camera.grab({"left": 0, "top": 0, "width": SIZE[0], "height": SIZE[1]})
        import numpy as np

        return Screen(np.frombuffer(shot.rgb, dtype=np.uint8).reshape(SIZE[1], SIZE[0], 3).copy())

    def do(self, action: Action) -> None:
        at, to = action.at, action.to
        if at:
            self._move(at)
        match action.kind:
            case Kind.CLICK | Kind.DOUBLE | Kind.RIGHT:
                button = "3" if action.kind is Kind.RIGHT else "1"
                self._xdotool("click", "--repeat", "2" if action.kind is Kind.DOUBLE else "1", button)
            case Kind.TYPE:
                self._xdotool("type", "--delay", "5", "--", action.text)
            case Kind.KEY:
                self._xdotool("key", "--", "+".join(map(_keysym, action.keys)))
            case Kind.SCROLL:
                wheel = ("5" if action.dy > 0 else "4") if action.dy else ("7" if action.dx > 0 else "6")
                notches = max(1, round(abs(action.dy or action.dx) / 40))
                self._xdotool("click", "--repeat", str(notches), wheel)
            case Kind.DRAG:
                assert at
                assert to
                self._xdotool("mousedown", "1")
                self._move(Point((at.x + to.x) / 2, (at.y + to.y) / 2))
                self._move(to)
                self._xdotool("mouseup", "1")
            case Kind.WAIT:
                time.sleep(action.seconds)
        self._settle()

    def outcome(self) -> Outcome:
        name, city, news = self._wanted
        saved = self._folder / "saved"
        if not saved.exists():
            return Outcome(False)
        right = saved.read_text().strip() == f"{name}|{city}|{int(news)}"
        return Outcome(True, right, "" if right else "another contact than the goal's was saved")

    def guide(self) -> Form:
        """Return the oracle for scripted agents."""
        return Form(self)

    def close(self) -> None:
        self._stop()
        self._open.close()

    def parts(self) -> dict[str, tuple[Box, bool, str]]:
        """Return for each widget its box, whether it has the focus, and its content. For scripted agents only."""
        time.sleep(0.13)  # the program reports its widgets twice in this time
        found = {}
        for line in (self._folder / "parts").read_text().splitlines():
            name, x, y, width, height, focus, value = line.split("|", 6)
            box = Box(float(x), float(y), float(x) + float(width), float(y) + float(height))
            found[name[1:]] = (box, focus == "1", value)
        return found

    @property
    def wanted(self) -> tuple[str, str, bool]:
        return self._wanted

    def _variables(self) -> dict[str, str]:
        return os.environ | {"DISPLAY": self._display}

    def _xdotool(self, *words: str) -> None:
        done = subprocess.run(
            ["xdotool", *words], env=self._variables(), capture_output=True, text=True, timeout=_PATIENCE
        )
        if done.returncode:
            raise PresageError(f"xdotool failed: {done.stderr.strip()[:200]}")

    def _move(self, point: Point) -> None:
        self._xdotool("mousemove", str(round(point.x)), str(round(point.y)))

    def _settle(self) -> None:
        """Wait until two consecutive frames are equal, for about one second at most."""
        end = time.monotonic() + 1.0
        time.sleep(0.12)
        last = self.screen()
        while time.monotonic() < end:
            time.sleep(0.06)
            now = self.screen()
            if now == last:
                return
            last = now

    def _stop(self) -> None:
        if self._program:
            self._program.kill()
            self._program.wait()
            self._program = None


class Form:
    """The oracle of the form: finds the right steps from the positions and contents of its widgets."""

    def __init__(self, desktop: Desktop) -> None:
        self._desktop = desktop
        self.rng = random.Random(0)

    def right(self) -> list[Right]:
        if self._desktop.outcome().over:
            return []
        parts = self._desktop.parts()
        name, city, news = self._desktop.wanted
        if any(parts[field][2] not in ("", text) for field, text in (("name", name), ("city", city))):
            return [self._click(parts["clear"][0], "Clear", "button")]
        steps = [self._filled(parts["name"], name, "Name"), self._filled(parts["city"], city, "City")]
        if (parts["news"][2] == "1") != news:
            steps.append(self._click(parts["news"][0], "Send newsletter", "checkbox"))
        open_steps = [each for each in steps if each]
        typing = [each for each in open_steps if each.action.kind is not Kind.CLICK]
        return typing or open_steps or [self._click(parts["save"][0], "Save", "button")]

    def allows(self, rights: list[Right], action: Action) -> bool:
        return any(each.allows(action) for each in rights)

    def elements(self) -> list[Element]:
        names = {
            "name": ("Name", "text field"), "city": ("City", "text field"), "news": ("Send newsletter", "checkbox"),
            "save": ("Save", "button"), "clear": ("Clear", "button"),
        }  # fmt: skip
        return [Element(part[0], *names[key], "", part[2]) for key, part in self._desktop.parts().items()]

    def _filled(self, part: tuple[Box, bool, str], text: str, name: str) -> Right | None:
        box, focused, value = part
        if value == text:
            return None
        if not focused:
            return self._click(box, name, "text field", text)
        return Right(Action(Kind.TYPE, text=text), name, "text field", (box,))

    def _click(self, box: Box, name: str, role: str, then: str = "") -> Right:
        x = round(box.left + box.width * self.rng.uniform(0.3, 0.7))
        y = round(box.top + box.height * self.rng.uniform(0.35, 0.65))
        return Right(Action(Kind.CLICK, at=Point(x, y)), name, role, (box,), then=then)


def _start_xvfb() -> tuple[subprocess.Popen[bytes], str]:
    """Start Xvfb and return its process and its display. Xvfb chooses a free display number itself."""
    reader, writer = os.pipe()
    with os.fdopen(reader) as told:
        try:
            server = subprocess.Popen(
                ["Xvfb", "-displayfd", str(writer), "-screen", "0", f"{SIZE[0]}x{SIZE[1]}x24", "-nolisten", "tcp"],
                pass_fds=(writer,), stderr=subprocess.DEVNULL,
            )  # fmt: skip
        finally:
            os.close(writer)
        try:
            number = told.readline().strip()
        except BaseException:
            _end(server)
            raise
    if not number:
        server.wait()
        raise PresageError("Xvfb does not start; try 'Xvfb :99' by hand to see why")
    return server, f":{number}"


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.wait()
