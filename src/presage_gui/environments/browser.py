"""A page in Chromium, driven by Playwright: carries out actions, takes screenshots, waits for the page to settle."""

from __future__ import annotations

import os
import shutil
import time
from typing import Any

from presage import PresageError
from presage.core.errors import install
from presage_gui.action import Action, Kind, Point
from presage_gui.screen import Screen

_KEYS = {
    "ctrl": "Control", "alt": "Alt", "shift": "Shift", "meta": "Meta", "enter": "Enter", "tab": "Tab",
    "escape": "Escape", "backspace": "Backspace", "delete": "Delete", "insert": "Insert", "space": " ",
    "home": "Home", "end": "End", "pageup": "PageUp", "pagedown": "PageDown", "up": "ArrowUp", "down": "ArrowDown",
    "left": "ArrowLeft", "right": "ArrowRight", **{f"f{number}": f"F{number}" for number in range(1, 13)},
}  # fmt: skip
_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--font-render-hinting=none",
    "--hide-scrollbars=false",
)
_SETTLED = 2
"""The page has settled after this many consecutive equal frames."""


def chromium() -> str:
    """Return the path of Chromium. Raises PresageError if it is not installed."""
    found = os.environ.get("PRESAGE_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if not found:
        raise PresageError("Chromium is missing: 'apt-get install chromium', or set PRESAGE_CHROMIUM to its path")
    return found


class Browser:
    """One page in a new offline browser. `clip`: the visible part, `patience`: the longest wait to settle, seconds."""

    def __init__(self, width: int, height: int, clip: tuple[int, int] | None = None, patience: float = 1.5) -> None:
        try:
            from playwright.sync_api import Error, sync_playwright
        except ImportError:
            raise PresageError(f"a browser needs Playwright: {install('gui')}") from None
        self._clip = clip or (width, height)
        self._patience = patience
        self._playwright = sync_playwright().start()
        try:
            self._browser = self._playwright.chromium.launch(executable_path=chromium(), args=list(_FLAGS))
            context = self._browser.new_context(viewport={"width": width, "height": height}, offline=True)
            self.page: Any = context.new_page()
        except (Error, PresageError) as error:
            self._playwright.stop()
            raise PresageError(f"Chromium cannot be started: {str(error).splitlines()[0]}") from None
        self.page.on("dialog", lambda dialog: dialog.dismiss())

    def screen(self) -> Screen:
        width, height = self._clip
        clip = {"x": 0, "y": 0, "width": width, "height": height}
        return Screen.from_png(self.page.screenshot(clip=clip, animations="allow", caret="initial"))

    def do(self, action: Action) -> None:
        page = self.page
        match action.kind:
            case Kind.CLICK | Kind.DOUBLE | Kind.RIGHT:
                button = "right" if action.kind is Kind.RIGHT else "left"
                x, y = _pixels(action.at)
                page.mouse.click(x, y, button=button, click_count=2 if action.kind is Kind.DOUBLE else 1)
            case Kind.TYPE:
                page.keyboard.type(action.text)
            case Kind.KEY:
                page.keyboard.press("+".join(_KEYS.get(key, key) for key in action.keys))
            case Kind.SCROLL:
                if action.at:
                    page.mouse.move(*_pixels(action.at))
                page.mouse.wheel(action.dx, action.dy)
            case Kind.DRAG:
                self._drag(_pixels(action.at), _pixels(action.to))
            case Kind.WAIT:
                time.sleep(action.seconds)
        self.settle()

    def _drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        mouse = self.page.mouse
        mouse.move(*start)
        mouse.down()
        mouse.move((start[0] + end[0]) / 2, (start[1] + end[1]) / 2, steps=4)
        mouse.move(*end, steps=4)
        mouse.up()

    def settle(self) -> None:
        """Wait until the page stops changing, at most `patience` seconds, as some pages never stop."""
        end = time.monotonic() + self._patience
        last, equal = self.screen().digest, 1
        while equal < _SETTLED and time.monotonic() < end:
            time.sleep(0.04)
            now = self.screen().digest
            last, equal = now, equal + 1 if now == last else 1

    def close(self) -> None:
        self._browser.close()
        self._playwright.stop()


def _pixels(point: Point | None) -> tuple[float, float]:
    assert point is not None  # the kinds of action that get here have a point
    return point.x, point.y
