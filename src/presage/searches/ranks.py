"""Ranks: how a value stands among all that were told, in a time that does not grow with their number.

Values are log2 S. Those that fall into the same cell, less than a thousandth of an octave wide, are tied.
"""

from __future__ import annotations

_CELLS_PER_OCTAVE = 1024
_OCTAVES = 64
_CELLS = 2 * _OCTAVES * _CELLS_PER_OCTAVE
_BLOCK = 512


def cell(value: float) -> int:
    """The cell that a value falls into; the outermost hold what lies beyond."""
    return min(max(int((value + _OCTAVES) * _CELLS_PER_OCTAVE), 0), _CELLS - 1)


class Ranks:
    """Counts per cell and per block of cells, whose sums make a rank.

    >>> ranks = Ranks()
    >>> for value in (1.0, 2.0, 2.0, 3.0):
    ...     ranks.add(cell(value))
    >>> [ranks.rank(cell(value)) for value in (1.0, 2.0, 3.0)]
    [1.0, 2.5, 4.0]
    """

    def __init__(self) -> None:
        self._cells = [0] * _CELLS
        self._blocks = [0] * (_CELLS // _BLOCK)

    def add(self, at: int, count: int = 1) -> None:
        """One more value in this cell, or with -1 one less."""
        self._cells[at] += count
        self._blocks[at // _BLOCK] += count

    def rank(self, at: int) -> float:
        """The rank of the values in this cell, from 1 for the least; tied ones share the mean of theirs."""
        block = at // _BLOCK
        below = sum(self._blocks[:block]) + sum(self._cells[block * _BLOCK : at])
        return below + (self._cells[at] + 1) / 2
