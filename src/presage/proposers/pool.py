"""The `pool` proposer: take kernels from a recording, half of them near the parent and half at random."""

from __future__ import annotations

import random
from collections.abc import Collection, Container, Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from presage.core.errors import PresageError
from presage.devices.recorded import RecordedDevice
from presage.devices.recording import Row
from presage.proposers.base import Ground, Parent, Proposal, Proposer

_TRIES = 8
"""Random draws per candidate. After these, the proposer falls back to listing every remaining kernel."""
_MOST_TRIES = 8_192
_ROAMING = 2.0
"""The largest random number of steps that is added to a neighbour's distance before sorting."""


class PoolProposer(Proposer):
    """Takes kernels from a recording: half are similar to the parent, half are random. It does not use the results."""

    is_list = True

    def __init__(self, ground: Ground) -> None:
        super().__init__(ground)
        if not isinstance(ground.device, RecordedDevice):
            raise PresageError(
                f"{ground.device.name} has no pool of kernels; the pool proposer needs a recorded device"
            )
        self._rows = candidates(ground.device.rows(ground.problem.name).values())
        families: dict[tuple[str, str], list[Row]] = {}
        for row in self._rows:
            families.setdefault((row.language, row.family), []).append(row)
        self._family_of = {row.hash: family for family in map(_Family, families.values()) for row in family.rows}

    def propose(
        self, parent: Parent, others: Sequence[Parent], count: int, known: Container[str], rng: random.Random
    ) -> list[Proposal]:
        start = parent.measured.kernel.hash
        found: dict[str, Proposal] = {}
        if start in self._family_of:
            _take(found, self._family_of[start].near(start, rng), "near its parent", (count + 1) // 2, known)
        _take(found, self._anywhere(count, rng), "from anywhere", count, known)
        return list(found.values())

    def _anywhere(self, count: int, rng: random.Random) -> Iterator[Row]:
        """Random rows, then all rows in random order. Random draws suffice until few rows are left unseen."""
        for _ in range(min(_TRIES * count, _MOST_TRIES)):
            yield self._rows[rng.randrange(len(self._rows))]
        yield from rng.sample(self._rows, len(self._rows))


def candidates(rows: Collection[Row]) -> list[Row]:
    """The rows that a search may find. PyTorch's rows only serve for comparison, unless there are no others."""
    return [row for row in rows if row.language != "torch"] or list(rows)


class _Family:
    """The kernels of one file, and the position of each along its tunables."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows
        self._at = {row.hash: place for place, row in enumerate(rows)}
        names = sorted({name for row in rows for name in row.values})
        self._steps = np.stack([_steps([row.values.get(name) for row in rows]) for name in names or [""]], axis=1)

    def near(self, start: str, rng: random.Random) -> Iterator[Row]:
        """The other kernels, approximately from the nearest to the farthest."""
        away = np.abs(self._steps - self._steps[self._at[start]]).sum(axis=1)
        roaming = np.random.default_rng(rng.getrandbits(64)).random(len(self.rows))
        for place in np.argsort(away + _ROAMING * roaming, kind="stable"):
            if self.rows[place].hash != start:
                yield self.rows[place]


def _steps(values: Sequence[object]) -> npt.NDArray[np.int64]:
    """The position of each value among the distinct values: numbers by size, then the others as text."""

    def size(value: object) -> tuple[bool, float, str]:
        return (False, float(value), "") if isinstance(value, int | float) else (True, 0.0, str(value))

    places = {value: place for place, value in enumerate(sorted(set(values), key=size))}
    return np.array([places[value] for value in values], dtype=np.int64)


def _take(found: dict[str, Proposal], rows: Iterable[Row], why: str, count: int, known: Container[str]) -> None:
    """Add new rows to `found` until it holds `count` proposals."""
    for row in rows:
        if len(found) >= count:
            return
        if row.hash not in known and row.hash not in found:
            found[row.hash] = Proposal(row.kernel, why)
