"""Output for people: aligned tables, readable numbers, and progress as a bar on a terminal, as lines elsewhere."""

from __future__ import annotations

import argparse
import math
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO, cast

from presage.core.errors import PresageError
from presage.core.text import printable

if TYPE_CHECKING:  # which needs numpy
    from presage.core.statistics import Interval

TARGET = "h200"
"""What forecast, inspect and corpus compile are about unless told otherwise."""
_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns"))


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
    """While a command runs, control characters are escaped on stdout and stderr, and so is what the terminal's encoding
    cannot write."""
    before = sys.stdout, sys.stderr
    for stream in before:
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    sys.stdout, sys.stderr = (cast(TextIO, _Shown(stream)) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def control(text: str) -> None:
    """Write control sequences of our own to stderr. Text from elsewhere in them must be made printable first."""
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
    """Columns as wide as their widest cell."""
    lines = [[printable(cell) for cell in line] for line in (header, *rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines)


def positive(text: str) -> float:
    """An argument that is a positive number."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError(f"'{text}' is not a positive number")
    return value


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
    """The problem: the first argument, or --problem."""
    parser.add_argument(
        "first", nargs="?", metavar="PROBLEM",
        help="the name of a problem ('presage problems' lists them), or the path of a KernelBench file, a GPU MODE"
        f" folder or a file of your own{more}",
    )  # fmt: skip
    parser.add_argument("--problem", help="the problem; the first argument is then a kernel")


def problem_and_kernels(arguments: argparse.Namespace, command: str) -> tuple[str, list[str]]:
    """The problem, and the kernels: `-` stands for a list on stdin, one a line."""
    words = [word for word in (arguments.problem, arguments.first, *arguments.kernels) if word is not None]
    if len(words) == 1 and (path := kernel_file(words[0])):
        return path, words
    kernels = [kernel for word in words[1:] for kernel in (_listed() if word == "-" else [word])]
    if not kernels:
        empty = "; the list on stdin is empty" if len(words) > 1 else ""
        raise PresageError(f"a problem and a kernel are needed; write 'presage {command} PROBLEM KERNEL…'{empty}")
    return words[0], kernels


def kernel_file(word: str) -> str | None:
    """The path of a bare kernel that is named without a problem: its header says which one it solves."""
    path = word.partition("@")[0]
    return path if path.endswith((".c", ".cu")) and os.path.isfile(path) else None


def _listed() -> list[str]:
    """The lines of stdin, without empty ones."""
    return [line.strip() for line in sys.stdin if line.strip()]


KERNELS = (
    "a kernel file, or the name of one of the problem's own kernels; PATH@NAME=VALUE,… sets tunables;"
    " '-' reads a list from stdin, one a line"
)


def add_target(parser: argparse.ArgumentParser, forms: str) -> None:
    """The hardware that a command is about, and does not need. A device stands for the hardware that it has."""
    parser.add_argument("--target", default=TARGET, metavar="HARDWARE", help=f"{forms} (default: {TARGET})")
    parser.add_argument(
        "--device", dest="target", default=argparse.SUPPRESS, metavar="DEVICE",
        help="the same for the hardware of a device: cuda is the GPU of this computer, recorded:NAME that of a"
        " recording; nothing is measured",
    )  # fmt: skip


def add_fail(parser: argparse.ArgumentParser, when: str) -> None:
    """An exit status for scripts. Without it a kernel that fails is a result like any other."""
    parser.add_argument("--fail", action="store_true", help=f"exit with status 1 if {when}")
