"""Every example of the README and of docs/ runs, without a GPU, in the order of its page and in a folder of its own.

- A block with a title is the file of that name. `sh` and `console` blocks run in a shell, `python` blocks in Python.
- What a `console` block shows after a command is what the command prints. The same holds for a `text` block with the
  title "output", which follows a `python` block. `…` stands for any text, on its own in a line for any lines.
- `<!-- needs: gpu -->` before a block names what a machine that runs tests may lack; `HERE` lists the words. A block
  that cannot run is parsed: its commands take the arguments that they are given.
- The README and the tutorial run always, the other pages in sweeps; otherwise they are parsed, too.

`PYTHONPATH=tests/helpers python tests/docs/test_examples.py` writes what is printed today into the pages.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from programs import warmed

from presage import PresageError
from presage.cli import main
from presage.static import toolkit
from presage_gui.cli import main as gui

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(
    r'(?:^<!-- needs: (?P<needs>[a-z, ]+) -->\n+)?^```(?P<kind>\w+)(?: title="(?P<title>[^"]+)")?\n(?P<text>.*?)^```$',
    re.DOTALL | re.MULTILINE,
)


def has_cuda_extra() -> bool:
    with suppress(PresageError):
        return toolkit.nvrtc().exists()
    return False


HERE: dict[str, Callable[[], bool]] = {
    "gpu": lambda: False,
    "model": lambda: False,
    "network": lambda: False,
    "minutes": lambda: False,
    "person": lambda: False,
    "compiler": lambda: any(map(shutil.which, ("gcc", "clang", "cc"))),
    "torch": lambda: importlib.util.find_spec("torch") is not None,
    "cuda": has_cuda_extra,
    "mcp": lambda: importlib.util.find_spec("mcp") is not None,
    "gui": lambda: importlib.util.find_spec("PIL") is not None,
    "browser": lambda: bool(shutil.which("chromium")) and importlib.util.find_spec("miniwob") is not None,
    "desktop": lambda: all(map(shutil.which, ("Xvfb", "xdotool", "wish"))) and bool(importlib.util.find_spec("mss")),
}
"""What a block may need, and whether it is here. `cuda` is the extra of that name, which needs no GPU."""


def pages() -> list[Path]:
    """The README and docs/, without the figures, whose commands take minutes and machines."""
    return [ROOT / "README.md", *(p for p in sorted((ROOT / "docs").rglob("*.md")) if p.parent.name != "measured")]


@dataclass(frozen=True)
class Block:
    kind: str
    title: str | None
    needs: tuple[str, ...]
    text: str

    @property
    def can_run(self) -> bool:
        return all(HERE[need]() for need in self.needs)


def blocks(page: Path) -> list[Block]:
    return [
        Block(found["kind"], found["title"], tuple(re.findall(r"\w+", found["needs"] or "")), found["text"])
        for found in BLOCK.finditer(page.read_text())
    ]


def dialogue(text: str) -> list[tuple[str, str]]:
    """The commands of a `console` block, each with what it prints.

    >>> dialogue("$ one\\n1\\n2\\n$ two\\n")
    [('one', '1\\n2\\n'), ('two', '')]
    """
    _, *parts = re.split(r"^\$ ", text, flags=re.MULTILINE)
    return [(command, output) for command, _, output in (part.partition("\n") for part in parts)]


class Folder:
    """Where a page's examples run. `presage` and `./presage` are the one under test, `python` runs the tests."""

    def __init__(self, path: Path, programs: Sequence[str]) -> None:
        self.path, self._programs, bin = path, programs, path / ".bin"
        bin.mkdir()
        begun = {name: [*programs, name] for name in ("presage", "presage-gui")} | {"python": [sys.executable]}
        for name, command in begun.items():
            script = bin / name
            script.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
            script.chmod(0o755)
        (path / "presage").symlink_to(bin / "presage")
        source = os.pathsep.join(filter(None, (str(ROOT / "src"), os.environ.get("PYTHONPATH"), str(path / ".site"))))
        self.environment = os.environ | {"PATH": f"{bin}:{os.environ['PATH']}", "PYTHONPATH": source, "COLUMNS": "120"}
        # What a page installs goes into its folder, and comes from no network. (pip reads 0 as "no isolation".)
        self.environment |= {"PIP_TARGET": str(path / ".site"), "PIP_NO_DEPS": "1", "PIP_NO_INDEX": "1"}
        self.environment |= {"PIP_NO_BUILD_ISOLATION": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}

    def run(self, *command: str) -> str:
        done = subprocess.run(
            command, cwd=self.path, env=self.environment, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, f"{command[-1]}\n{done.stdout}{done.stderr}"
        return done.stdout

    def shell(self, text: str) -> str:
        return self.run("sh", "-eu", "-c", text)

    def python(self, text: str) -> str:
        return self.run(*self._programs, "python", text)


def printed(folder: Folder, page: list[Block]) -> Iterator[tuple[str, str, str]]:
    """Runs a page's blocks in order: what was run, what it should print, and what it does."""
    last = ("", "")
    for block in page:
        if block.title and block.title != "output":
            (folder.path / block.title).write_text(block.text)
        elif block.kind == "text" and block.title == "output" and last[0]:
            yield last[0], block.text, last[1]
        elif not block.can_run:
            parse(block)
            last = ("", "")
        elif block.kind == "sh":
            folder.shell(block.text)
        elif block.kind == "console":
            for command, output in dialogue(block.text):
                yield command, output, folder.shell(command)
        elif block.kind == "python":
            last = (block.text, folder.python(block.text))


def parse(block: Block) -> None:
    """Check the arguments of every `presage` command of a block that cannot run here, and that its Python compiles."""
    if block.kind == "python":
        compile(block.text, "example", "exec")
    text = block.text if block.kind == "sh" else "\n".join(command for command, _ in dialogue(block.text))
    for line in text.replace("\\\n", " ").splitlines() if block.kind in ("sh", "console") else ():
        for words in commands(line):
            check_arguments(words)


def commands(line: str) -> Iterator[list[str]]:
    """Each `presage` and `presage-gui` in a line of shell, with its arguments.

    >>> list(commands("A=1 ./presage runs && presage-gui page x | head  # see"))
    [['presage', 'runs'], ['presage-gui', 'page', 'x']]
    """
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: list[str] = []
    for word in [*lexer, ";"]:
        if not set(word) <= set("();<>|&"):
            words.append(word)
            continue
        while words and re.fullmatch(r"\w+=.*", words[0]):
            words.pop(0)
        if words and words[0] in ("presage", "./presage", "presage-gui") and words[1:2] != ["test"]:
            yield [words[0].removeprefix("./"), *words[1:]]
        words = []


def check_arguments(words: list[str]) -> None:
    program, *arguments = words
    try:
        _, surplus = (gui if program == "presage-gui" else main).build(arguments[0]).parse_known_args(arguments)
    except (SystemExit, PresageError) as refused:
        raise AssertionError(f"{shlex.join(words)} is refused") from refused
    assert not surplus, f"{shlex.join(words)} does not know {surplus}"


def agree(shown: str, output: str) -> bool:
    """
    >>> agree("a … c\\n…\\nz\\n", "a b c\\nd\\ne\\nz\\n")
    True
    >>> agree("a\\n", "b\\n")
    False
    """
    pattern = re.escape(shown.rstrip()).replace(r"\ ", " ").replace("\\\n", "\n")
    pattern = re.sub(r"^…$", r"(?s:.*)", pattern, flags=re.MULTILINE).replace("…", ".*")
    return re.fullmatch(pattern, re.sub(r" +$", "", output.rstrip(), flags=re.MULTILINE)) is not None


def runs_in_sweeps(page: Path) -> bool:
    """Most pages do with other files what the README, the tutorial and the tests of commands do."""
    return page.relative_to(ROOT).as_posix() not in ("README.md", "docs/tutorial.md")


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page,
            id=page.relative_to(ROOT).as_posix(),
            marks=[pytest.mark.sweep] if runs_in_sweeps(page) else [],
        )
        for page in pages()
    ],
)
def test_every_example_of_the_page_runs(page: Path, tmp_path: Path, programs: Sequence[str]) -> None:
    for command, shown, output in printed(Folder(tmp_path, programs), blocks(page)):
        assert agree(shown, output), f"{page.name}: {command}\nprints\n{output}\nand not\n{shown}"


def test_commands_of_other_pages_take_their_arguments() -> None:
    for page in filter(runs_in_sweeps, pages()):
        for block in blocks(page):
            parse(block)


def test_pages_name_only_needs_and_scripts_that_exist() -> None:
    for page in [*pages(), *(ROOT / "docs" / "measured").glob("*.md")]:
        assert {need for block in blocks(page) for need in block.needs} <= set(HERE), page
        for script in re.findall(r"\bbenchmarks/\w+\.py", page.read_text()):
            assert (ROOT / script).exists(), f"{page.name} names {script}"


def test_an_argument_that_is_gone_is_noticed() -> None:
    parse(Block("sh", None, ("gpu",), "presage measure softmax a.cu --device cuda\n"))
    with pytest.raises(AssertionError, match="no-such"):
        parse(Block("sh", None, ("gpu",), "presage measure softmax a.cu --no-such 1\n"))


def rewrite(page: Path, programs: Sequence[str]) -> None:
    """Write what is printed today into a page, where it does not agree."""
    text = page.read_text()
    with tempfile.TemporaryDirectory() as folder:
        for command, shown, output in printed(Folder(Path(folder), programs), blocks(page)):
            if not agree(shown, output):
                before = f"$ {command}\n" if f"$ {command}\n{shown}" in text else ""
                clean = re.sub(r" +$", "", output, flags=re.MULTILINE)
                after = "" if before else "```"
                text = text.replace(f"{before}{shown}{after}", f"{before}{clean}{after}", 1)
                print(f"{page.relative_to(ROOT)}: {command.splitlines()[0]}")
    page.write_text(text)


if __name__ == "__main__":
    with warmed() as found:
        for each in pages():
            rewrite(each, found)
