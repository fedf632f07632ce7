"""One warp on its way through a program: the integers of its 32 lanes, what instructions do to them, and its loops.

An action is what one instruction does: it is made once for a program, and called for every warp that comes by.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from presage.static.lane_integers import WARP, Lanes, same, sectors, unsigned32

KINDS = (
    "instructions", "integer", "fp32", "fp16", "fp64", "special", "convert", "move", "shuffle", "barrier", "atomic",
    "branch", "global_load", "global_store", "shared_load", "shared_store", "local", "async_copy", "tensor", "other",
    "lanes", "tensor_flops", "load_sectors", "store_sectors", "atomic_sectors", "shared_wavefronts",
)  # fmt: skip
"""What is counted, per warp: instructions and their kinds; then the lanes that took part in them, flops of tensor
cores, sectors of 32 bytes that global accesses touch, and passes that shared accesses need for their bank conflicts."""
MOST_STEPS = 10_000
"""Basic blocks walked one by one before giving up."""
_PERIODS = (1, 2, 3, 4)
"""Iterations after which a loop may repeat itself: a ring of buffers comes round after as many."""
_MEMORY, _EVIDENCE = 12, 4
"""Rounds of a loop that are remembered, and how many must be alike where that is all there is to go by."""
AT = {name: i for i, name in enumerate(KINDS)}
UNBOUNDED = "unbounded_"
"""Before the name of a kind: of these, what lies in loops that memory ends. They are walked once."""
COUNTED = (*KINDS, *(UNBOUNDED + name for name in KINDS))
_UNBOUNDED = slice(len(KINDS), len(COUNTED))


class EndlessError(Exception):
    """A warp that does not come to its end."""


@dataclass
class Ready:
    """A basic block: what its instructions count for, and what must be computed."""

    counts: npt.NDArray[np.float64]
    """Of COUNTED, and then of each loop, how often the warp comes to its head."""
    actions: list[Callable[[Warp, Lanes], None]]
    target: int | None = None
    """Where its branch leads; -1 is the end."""
    guard: tuple[int, bool] | None = None
    """The predicate of its branch, and whether that must be false."""


class Code(Protocol):
    """A program, as far as a warp needs it."""

    blocks: list[Ready]
    headers: set[int]
    """The blocks that loops begin with."""
    registers: dict[str, int]
    """The number of each."""
    crooked: list[int]
    """Registers that an operation gives which is not linear in its operands."""


# -- actions of a block -----------------------------------------------------------------------------------------------

Source = int | Lanes | None


def forgetting(targets: Sequence[int]) -> Callable[[Warp, Lanes], None]:
    def forget(warp: Warp, mask: Lanes) -> None:
        for target in targets:
            warp.forget(target)

    return forget


def loading(targets: Sequence[int], source: Source, guard: tuple[int, bool] | None) -> Callable[[Warp, Lanes], None]:
    """What is read is not known, but lanes that read the same place read the same."""

    def load(warp: Warp, mask: Lanes) -> None:
        found = warp.read([source])
        admitted = mask if guard is None else warp.admitted(mask, guard)
        for number, target in enumerate(targets):
            if found is None:
                warp.forget(target)
            else:
                _, place = np.unique(found[0][0], return_inverse=True)
                warp.write(target, _ANY[number % len(_ANY)][place], admitted, sure=False)

    return load


_ANY = np.random.default_rng(0).integers(0, 1 << 16, size=(8, WARP))
"""Numbers that stand for what is read, of each part of a vector for each place."""


def computing(
    target: int, sources: Sequence[Source], compute: Callable[..., Lanes], wrap: Any, guard: tuple[int, bool] | None
) -> Callable[[Warp, Lanes], None]:
    def action(warp: Warp, mask: Lanes) -> None:
        found = warp.read(sources)
        if found is None:
            warp.forget(target)
        else:
            values, sure = found
            warp.write(target, wrap(compute(*values)), mask if guard is None else warp.admitted(mask, guard), sure)

    return action


def comparing(
    target: int, sources: Sequence[Source], compare: Callable[..., Any], kind: str, guard: tuple[int, bool] | None
) -> Callable[[Warp, Lanes], None]:
    read = unsigned32 if kind == "u32" else same

    def action(warp: Warp, mask: Lanes) -> None:
        found = warp.read(sources)
        if found is None or not found[1]:
            warp.forget(target)
            return
        left, right = map(read, found[0])
        warp.compared.append((target, left - right))
        admitted = mask if guard is None else warp.admitted(mask, guard)
        warp.write(target, compare(left, right).astype(np.int64), admitted, sure=True)

    return action


def accessing(
    source: Source, offset: int, width: int, guard: tuple[int, bool] | None, count: Callable[..., int], at: int
) -> Callable[[Warp, Lanes], None]:
    seen: dict[bytes, int] = {}

    def action(warp: Warp, mask: Lanes) -> None:
        active = mask if guard is None else warp.admitted(mask, guard)
        lanes = WARP if active is _ALL else int(np.count_nonzero(active))
        if not lanes:
            return
        found = warp.read([source])
        if found is None:  # an address that nothing is known of: each lane's is another
            warp.counts[at] += lanes if count is sectors else 1
            return
        addresses = found[0][0] + offset
        shape = (addresses - (addresses[0] & ~np.int64(127))).tobytes()
        if active is not _ALL:
            shape += active.tobytes()
        if shape not in seen:
            seen[shape] = count(addresses[active != 0], width)
        warp.counts[at] += seen[shape]

    return action


def either(
    register: int, in_shared: Callable[[Warp, Lanes], None], elsewhere: Callable[[Warp, Lanes], None]
) -> Callable[[Warp, Lanes], None]:
    """An access to whichever memory the register's address is of."""

    def action(warp: Warp, mask: Lanes) -> None:
        (in_shared if warp.is_shared[register] else elsewhere)(warp, mask)

    return action


_ALL = np.ones(WARP, dtype=np.int64)
"""All lanes; compared by identity, too, since most of the time it is all of them."""


def _are_equal(one: Lanes, other: Lanes) -> bool:
    return one is other or np.array_equal(one, other)


# -- one warp ---------------------------------------------------------------------------------------------------------


@dataclass
class _Snapshot:
    """The warp as it was when it came to the head of a loop."""

    registers: npt.NDArray[np.int64]
    known: npt.NDArray[np.bool_]
    counts: npt.NDArray[np.float64]
    mask: Lanes
    compared: int
    """How many comparisons had been made."""


class Warp:
    """The lanes of one warp, each at a block of its own; those furthest behind go first, and so they meet again."""

    def __init__(
        self,
        program: Code,
        parameters: Mapping[str, int],
        number: int,
        place: tuple[int, int, int],
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
    ) -> None:
        thread = number * WARP + np.arange(WARP, dtype=np.int64)
        given = {"%laneid": np.arange(WARP), "%warpid": np.full(WARP, number), "%cluster_ctarank": np.zeros(WARP)}
        ids = (thread % block[0], thread // block[0] % block[1], thread // (block[0] * block[1]))
        for i, axis in enumerate("xyz"):
            for name, value in (("tid", ids[i]), ("ctaid", place[i]), ("ntid", block[i]), ("nctaid", grid[i])):
                given[f"%{name}.{axis}"] = np.broadcast_to(value, WARP)
        given |= {name: np.full(WARP, value, dtype=np.int64) for name, value in parameters.items()}
        self._program = program
        self.registers = np.zeros((len(program.registers), WARP), dtype=np.int64)
        self._rows = list(self.registers)
        """Each of them, at hand: a list gives it several times as fast as an array does."""
        self.known = bytearray(len(program.registers))
        """Of registers, whether their values are known."""
        self._has_value = bytearray(len(program.registers))
        """Whether a register has a value at all, be it one that only stands for what memory holds."""
        for name, lanes in given.items():
            if name in program.registers:
                self.registers[program.registers[name]] = lanes
                self.known[program.registers[name]] = self._has_value[program.registers[name]] = True
        self.is_shared = [False] * len(program.registers)
        """Of registers, whether they hold an address of shared memory that could be any memory's."""
        self.counts = np.zeros(len(program.blocks[0].counts))
        self._entered: dict[int, npt.NDArray[np.float64]] = {}
        """The counts when the warp last came to the head of each loop."""
        self.compared: list[tuple[int, Lanes]] = []
        """The register that each comparison was written to, and how far apart the operands were."""
        self._mask, self._is_full = np.zeros(WARP, dtype=np.int64), False
        self._at = np.where(thread < block[0] * block[1] * block[2], 0, -1)
        self._together = None if (self._at < 0).any() else 0
        """The block that all lanes are at, if they are."""
        self._seen: dict[int, list[_Snapshot]] = {}

    def read(self, sources: Sequence[Source]) -> tuple[list[Lanes], bool] | None:
        """The values, and whether they are known; None where one has none."""
        values: list[Lanes] = []
        sure = True
        for source in sources:
            if isinstance(source, int):
                if not self.known[source]:
                    if not self._has_value[source]:
                        return None
                    sure = False
                values.append(self._rows[source])
            elif source is None:
                return None
            else:
                values.append(source)
        return values, sure

    def forget(self, target: int) -> None:
        self.known[target] = self._has_value[target] = False

    def write(self, target: int, values: Lanes, mask: Lanes, sure: bool) -> None:
        if self._is_full and mask is self._mask:
            self._rows[target][:] = values
        else:
            np.copyto(self._rows[target], values, where=mask != 0)
        self.known[target] = sure  # where it is used, its lanes are those that have written it
        self._has_value[target] = True

    def admitted(self, mask: Lanes, guard: tuple[int, bool]) -> Lanes:
        """The lanes that a predicate lets through; all of them where it is not known."""
        register, negated = guard
        if not self.known[register]:
            return mask
        admitted: Lanes = mask & ((self._rows[register] == 0) == negated)
        return admitted

    def run(self) -> None:
        """From the first block to the end of all lanes; EndlessError where that takes too many."""
        blocks, headers = self._program.blocks, self._program.headers
        for _ in range(MOST_STEPS):
            number, mask, lanes = self._next()
            if number < 0:
                return
            self._mask, self._is_full = mask, lanes == WARP
            if number in headers:
                self._skip(number, mask)
                self._entered[number] = self.counts.copy()
            block = blocks[number]
            self.counts += block.counts
            self.counts[AT["lanes"]] += block.counts[AT["instructions"]] * lanes
            for action in block.actions:
                action(self, mask)
            self._branch(block, number, mask)
        raise EndlessError

    def _next(self) -> tuple[int, Lanes, int]:
        """The block that is next, the lanes that are there, and how many these are; -1 at the end of all."""
        if self._together is not None:
            return self._together, _ALL, WARP
        waiting = self._at[self._at >= 0]
        if not waiting.size:
            return -1, _ALL, 0
        number = int(waiting.min())
        mask = (self._at == number).astype(np.int64)
        return number, mask, int(mask.sum())

    def _branch(self, block: Ready, number: int, mask: Lanes) -> None:
        after = number + 1 if number + 1 < len(self._program.blocks) else -1
        target = after if block.target is None else block.target
        if block.guard is None:
            self._go(mask, target)
        elif not self.known[block.guard[0]]:  # what memory holds decides: go on, and out of a loop
            self._go(mask, after)
            if target in self._entered and target <= number:
                since = self.counts - self._entered[target]
                self.counts[_UNBOUNDED] += since[: len(KINDS)] - since[_UNBOUNDED]
        else:
            taken = self.admitted(mask, block.guard)
            count = np.count_nonzero(taken)
            if count == 0 or (self._is_full and count == WARP):
                self._go(mask, target if count else after)
            else:
                self._go(mask, after)
                self._go(taken, target)

    def _go(self, mask: Lanes, number: int) -> None:
        if mask is _ALL:
            self._together = number
            self._at[:] = number
        else:
            self._at[mask != 0] = number
            self._together = number if (self._at == number).all() else None

    # -- loops --------------------------------------------------------------------------------------------------------

    def _skip(self, header: int, mask: Lanes) -> None:
        """At the head of a loop: if the last rounds were alike, count those that will be like them at once."""
        seen = self._seen.setdefault(header, [])
        known = np.frombuffer(bytes(self.known), dtype=np.bool_)
        now = _Snapshot(self.registers.copy(), known, self.counts.copy(), mask, len(self.compared))
        for period in _PERIODS:
            if rounds := self._alike([now, *seen[-period::-period]]):
                before = seen[-period]
                self.registers += rounds * (now.registers - before.registers)
                self.counts += rounds * (now.counts - before.counts)
                seen.clear()
                return
        seen.append(now)
        del seen[:-_MEMORY]

    def _alike(self, seen: Sequence[_Snapshot]) -> int:
        """How many more rounds will be like the last two, in which everything changed by the same amounts. What comes
        from an operation that is not linear must have done so for longer."""
        if len(seen) < 3:
            return 0
        now, before, earlier = seen[:3]
        if not (
            _are_equal(now.mask, before.mask)
            and _are_equal(now.mask, earlier.mask)
            and np.array_equal(now.counts - before.counts, before.counts - earlier.counts)
            and np.array_equal(now.known, before.known)
        ):
            return 0
        step = now.registers - before.registers
        if np.array_equal(step[now.known], (before.registers - earlier.registers)[now.known]) and self._straight(
            step, seen
        ):
            return self._rounds_left(now, before, earlier)
        return 0

    def _straight(self, step: npt.NDArray[np.int64], seen: Sequence[_Snapshot]) -> bool:
        crooked = [register for register in self._program.crooked if seen[0].known[register] and step[register].any()]
        return not crooked or (
            len(seen) > _EVIDENCE
            and all(
                np.array_equal(one.registers[crooked] - other.registers[crooked], step[crooked])
                for one, other in itertools.pairwise(seen)
            )
        )

    def _rounds_left(self, now: _Snapshot, before: _Snapshot, earlier: _Snapshot) -> int:
        """How many rounds there are before a comparison may turn out otherwise."""
        last = self.compared[before.compared : now.compared]
        previous = self.compared[earlier.compared : before.compared]
        if [target for target, _ in last] != [target for target, _ in previous]:  # it took another way
            return 0
        active = now.mask != 0
        rounds = np.iinfo(np.int64).max
        for (_, difference), (_, was) in zip(last, previous, strict=True):
            change = (difference - was)[active]
            moving = change != 0
            towards = moving & ((difference[active] < 0) == (change > 0))
            if towards.any():
                left = np.abs(difference[active][towards]) // np.abs(change[towards])
                rounds = min(rounds, int(left.min()))
        return 0 if rounds == np.iinfo(np.int64).max else max(0, rounds - 1)
