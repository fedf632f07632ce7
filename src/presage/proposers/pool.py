"""The `pool` proposer: what a recorded device can measure and nobody has seen yet, some of it near the parent."""

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
"""So many draws per candidate, before all that is left is listed."""
_MOST_TRIES = 8_192
_ROAMING = 2.0
"""By how many steps, at random, a nearer neighbour may come after a farther one."""


class PoolProposer(Proposer):
    """Takes kernels from a recording: half are similar to the parent, half are random. It looks at no result."""

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
        """Rows at random, and in the end all of them in a random order: most are unseen until few are left."""
        for _ in range(min(_TRIES * count, _MOST_TRIES)):
            yield self._rows[rng.randrange(len(self._rows))]
        yield from rng.sample(self._rows, len(self._rows))


def candidates(rows: Collection[Row]) -> list[Row]:
    """What a search may find: what PyTorch makes of an operation is there to compare with."""
    return [row for row in rows if row.language != "torch"] or list(rows)


class _Family:
    """The kernels of one file, and where each lies along its tunables."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows
        self._at = {row.hash: place for place, row in enumerate(rows)}
        names = sorted({name for row in rows for name in row.values})
        self._steps = np.stack([_steps([row.values.get(name) for row in rows]) for name in names or [""]], axis=1)

    def near(self, start: str, rng: random.Random) -> Iterator[Row]:
        """The others, about from the nearest on."""
        away = np.abs(self._steps - self._steps[self._at[start]]).sum(axis=1)
        roaming = np.random.default_rng(rng.getrandbits(64)).random(len(self.rows))
        for place in np.argsort(away + _ROAMING * roaming, kind="stable"):
            if self.rows[place].hash != start:
                yield self.rows[place]


def _steps(values: Sequence[object]) -> npt.NDArray[np.int64]:
    """Each value's place among the distinct ones, numbers by size."""

    def size(value: object) -> tuple[bool, float, str]:
        return (False, float(value), "") if isinstance(value, int | float) else (True, 0.0, str(value))

    places = {value: place for place, value in enumerate(sorted(set(values), key=size))}
    return np.array([places[value] for value in values], dtype=np.int64)


def _take(found: dict[str, Proposal], rows: Iterable[Row], why: str, count: int, known: Container[str]) -> None:
    """Adds what is new, until there are so many."""
    for row in rows:
        if len(found) >= count:
            return
        if row.hash not in known and row.hash not in found:
            found[row.hash] = Proposal(row.kernel, why)
