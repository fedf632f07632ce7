"""Terminal output (tables, readable numbers, progress) and the arguments that several commands share."""

from __future__ import annotations

import argparse
import codecs
import math
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO, cast

from presage.core.errors import PresageError
from presage.core.text import printable

if TYPE_CHECKING:  # this module imports numpy
    from presage.core.statistics import Interval

TARGET = "h200"
"""The default target hardware of `presage forecast` and `presage inspect`."""
_FILES = (".c", ".cu", ".py")
_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns"))


_IN_ASCII = {"±": "+-", "…": "...", "–": "-", "—": "-", "→": "->", "×": "x", "µ": "u", "≥": ">=", "≤": "<=", "’": "'"}
"""What stands for a character that a terminal's encoding cannot write."""
_ENCODING_ERRORS = "presage.in_ascii"


def _in_ascii(error: UnicodeError) -> tuple[str | bytes, int]:
    """An error handler for codecs: replace one character as `_IN_ASCII` says, and escape any other."""
    assert isinstance(error, UnicodeEncodeError)
    error.end = error.start + 1
    if shown := _IN_ASCII.get(error.object[error.start]):
        return shown, error.end
    return codecs.backslashreplace_errors(error)


codecs.register_error(_ENCODING_ERRORS, _in_ascii)


class _Shown:
    """A stream that escapes control characters, so that text from kernels and compilers cannot control the terminal."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        self.stream.write(printable(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def shown() -> Iterator[None]:
    """Escape control characters on stdout and stderr, and replace what the terminal's encoding cannot write.

    This is a context manager. It restores both streams at its end.
    """
    before = sys.stdout, sys.stderr
    for stream in before:
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=_ENCODING_ERRORS)
    sys.stdout, sys.stderr = (cast(TextIO, _Shown(stream)) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def control(text: str) -> None:
    """Write terminal control sequences to stderr, unescaped. Make text from other sources printable first."""
    stream = sys.stderr
    raw = stream.stream if isinstance(stream, _Shown) else stream
    raw.write(text)
    raw.flush()


def duration(ns: float) -> str:
    """
    >>> duration(1_234_567)
    '1.235 ms'
    """
    if not math.isfinite(ns):
        return "?"
    scale, unit = next(((s, u) for s, u in _UNITS if ns >= s), _UNITS[-1])
    return f"{ns / scale:.4g} {unit}"


def times(speedup: Interval) -> str:
    """
    >>> from presage.core.statistics import Interval
    >>> times(Interval(2.0, 1.9, 2.125))
    '2x (1.9 to 2.12)'
    >>> times(Interval(2.0, 0.0, math.inf))
    '2x (too few samples for an interval)'
    """
    ends = f"{speedup.low:.3g} to {speedup.high:.3g}" if speedup.is_known else "too few samples for an interval"
    return f"{speedup.value:.3g}x ({ends})"


def table(rows: Sequence[Sequence[str]], header: Sequence[str]) -> str:
    """Return the rows as aligned text. Each column is as wide as its widest cell."""
    lines = [[printable(cell) for cell in line] for line in (header, *rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines)


def positive(text: str) -> float:
    """Parse an argument that is a positive number below 1e6."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError(f"'{text}' is not a positive number")
    return value


def whole(least: int) -> Callable[[str], int]:
    """Return the parser of an argument that is a whole number, `least` or more."""

    def parse(text: str) -> int:
        if not (text.isascii() and text.isdigit() and int(text) >= least):
            raise argparse.ArgumentTypeError(f"'{text}' is not a whole number, {least} or more")
        return int(text)

    return parse


def port(text: str) -> int:
    """Parse an argument that is a port; 0 stands for any that is free."""
    if not (text.isascii() and text.isdigit() and int(text) < 65536):
        raise argparse.ArgumentTypeError(f"'{text}' is not a port: 0 to 65535")
    return int(text)


class ProgressLine:
    """Shows progress on stderr: redrawn in place on a terminal, one line per step elsewhere."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._last = ""

    def __call__(self, doing: str, share: float) -> None:
        if self._terminal:
            width = shutil.get_terminal_size().columns
            filled = round(20 * share)
            text = f"[{'#' * filled}{'.' * (20 - filled)}] {printable(doing)}"[: width - 1]
            control(f"\r\x1b[K{text}")
        elif doing != self._last:
            print(doing, file=sys.stderr, flush=True)
        self._last = doing

    def clear(self) -> None:
        if self._terminal and self._last:
            control("\r\x1b[K")


def add_problem(parser: argparse.ArgumentParser, more: str = "") -> None:
    """Add the arguments that name the problem: the first positional argument, and --problem."""
    parser.add_argument(
        "first", nargs="?", metavar="PROBLEM",
        help="the name of a problem ('presage problems' lists them), or the path of a KernelBench file, a GPU MODE"
        f" folder or a file of your own{more}",
    )  # fmt: skip
    parser.add_argument("--problem", help="the problem; the first argument is then a kernel")


def problem_and_kernels(arguments: argparse.Namespace, command: str) -> tuple[str, list[str]]:
    """Return the problem and the kernels. `-` stands for a list of kernels on stdin, one per line."""
    words = [word for word in (arguments.problem, arguments.first, *arguments.kernels) if word is not None]
    if words and (path := kernel_file(words[0])) and (len(words) == 1 or path != words[0]):
        words = [path, *words]
    kernels = [kernel for word in words[1:] for kernel in (_listed() if word == "-" else [word])]
    if not kernels:
        if len(words) == 1 and not os.path.exists(path := words[0].partition("@")[0]) and path.endswith(_FILES):
            raise PresageError(f"there is no file {path}")
        empty = "; the list on stdin is empty" if len(words) > 1 else ""
        raise PresageError(f"a problem and a kernel are needed; write 'presage {command} PROBLEM KERNEL…'{empty}")
    return words[0], kernels


def kernel_file(word: str) -> str | None:
    """Return the path if `word` is a bare kernel's file, else None. Its header names the problem that it solves."""
    path = word.partition("@")[0]
    return path if path.endswith((".c", ".cu")) and os.path.isfile(path) else None


def _listed() -> list[str]:
    """Return the lines of stdin that are not empty."""
    return [line.strip() for line in sys.stdin if line.strip()]


KERNELS = (
    "a kernel file, or the name of one of the problem's own kernels; PATH@NAME=VALUE,… sets tunables;"
    " '-' reads a list from stdin, one a line"
)


def add_target(parser: argparse.ArgumentParser, forms: str, default: str | None = TARGET, but: str = "") -> None:
    """Add --target, and --device as an alias that stands for the device's hardware. The hardware may be absent. but:
    exceptions from the default, for the help."""
    parser.add_argument("--target", default=default, metavar="HARDWARE", help=f"{forms} (default: {TARGET}{but})")
    parser.add_argument(
        "--device", dest="target", default=argparse.SUPPRESS, metavar="DEVICE",
        help="the same for the hardware of a device: cuda is the GPU of this computer, recorded:NAME that of a"
        " recording; nothing is measured",
    )  # fmt: skip


def add_fail(parser: argparse.ArgumentParser, when: str) -> None:
    """Add --fail, which sets the exit status for scripts. Without --fail a failing kernel is a normal result."""
    parser.add_argument("--fail", action="store_true", help=f"exit with status 1 if {when}")
