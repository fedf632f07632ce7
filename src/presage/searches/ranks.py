"""Ranks: the ranks of values among all values added so far, as a numpy table.

Values are log2 S. Values in the same cell, which is less than a thousandth of an octave wide, are tied.
"""

from __future__ import annotations

from array import array

import numpy as np
import numpy.typing as npt

_CELLS_PER_OCTAVE = 1024
_OCTAVES = 64
_CELLS = 2 * _OCTAVES * _CELLS_PER_OCTAVE

Floats = npt.NDArray[np.float64]


def cell(value: float) -> int:
    """The cell that a value falls into. Values beyond the range are clamped to the outermost cells."""
    return min(max(int((value + _OCTAVES) * _CELLS_PER_OCTAVE), 0), _CELLS - 1)


class Ranks:
    """Counts values per cell and derives ranks from the cumulative counts.

    >>> ranks = Ranks()
    >>> for value in (1.0, 2.0, 2.0, 3.0):
    ...     ranks.add(cell(value))
    >>> first, table = ranks.table()
    >>> [float(table[cell(value) - first]) for value in (1.0, 2.0, 3.0)]
    [1.0, 2.5, 4.0]
    """

    def __init__(self) -> None:
        self._counts = array("q", bytes(8 * _CELLS))
        self._first, self._last = _CELLS, 0

    def add(self, at: int, count: int = 1) -> None:
        """Add a value to a cell, or remove one with a count of -1."""
        self._counts[at] += count
        if at < self._first:
            self._first = at
        if at > self._last:
            self._last = at

    def table(self) -> tuple[int, Floats]:
        """Return the first cell ever used, and the rank of the values in each cell from there on. The least value has
        rank 1. Tied values share the mean of their ranks."""
        counts = np.frombuffer(self._counts, dtype=np.int64)[self._first : self._last + 1]
        return self._first, np.cumsum(counts) - counts + (counts + 1) / 2
