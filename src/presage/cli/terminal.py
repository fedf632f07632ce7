"""What people see: aligned tables, readable numbers, and progress that is a bar on a terminal and lines elsewhere."""

from __future__ import annotations

import argparse
import json
import math
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO, cast

from presage.core.text import printable

if TYPE_CHECKING:  # which needs numpy
    from presage.core.statistics import Interval

_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns"))


class _Shown:
    """A stream that shows what is written to it and obeys none of it, whoever's words they are."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        self.stream.write(printable(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def shown() -> Iterator[None]:
    """While a command runs, control characters reach neither stdout nor stderr; what the terminal's encoding cannot
    write is written out."""
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
    """Our own commands to the terminal on stderr, with text in between that was made printable."""
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


def print_json(document: Any) -> None:
    """One document; numbers that JSON cannot hold become null."""
    text = json.dumps(_finite(document), indent=2).replace("\x7f", "\\u007f")
    sys.stdout.write(f"{text}\n")


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return value


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
    """Shows what is being done: redrawn in place on a terminal, one line a step otherwise. Always on stderr."""

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


def add_problem(parser: argparse.ArgumentParser) -> None:
    """The problem, as the first argument or by its name."""
    parser.add_argument(
        "first", nargs="?", metavar="PROBLEM",
        help="a problem of the catalogue, which 'presage problems' lists; or the path of a KernelBench file or of a"
        " GPU MODE folder",
    )  # fmt: skip
    parser.add_argument("--problem", help="the problem, in place of the first argument, which is then a kernel")
