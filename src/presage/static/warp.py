"""Simulates one warp on its way through a program: the integers in its 32 lanes, what instructions do, and loops.

An action is a closure that does what one instruction does. It is made once per program and called for every warp that
reaches the instruction.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from presage.static.lane_integers import SECTOR, WARP, Lanes, same, sectors, unsigned32

KINDS = (
    "instructions", "integer", "fp32", "fp16", "fp64", "special", "convert", "move", "shuffle", "barrier", "atomic",
    "branch", "global_load", "global_store", "shared_load", "shared_store", "local", "async_copy", "tensor", "other",
    "lanes", "tensor_flops", "wmma_flops", "load_sectors", "store_sectors", "atomic_sectors", "shared_wavefronts",
)  # fmt: skip
"""The quantities counted per warp: instructions, in total and by kind; then active lanes summed over instructions,
flops of tensor cores (those of `wmma` apart), 32-byte sectors that global accesses touch, and passes of shared
accesses, including bank conflicts."""
PRODUCTS = ("fp8", "int8", "fp16", "bf16", "tf32", "fp64")
"""The types of the factors of tensor cores' products, the fastest first."""
MOST_STEPS = 10_000
"""Limit of the basic blocks that are walked one by one."""
_PERIODS = (1, 2, 3, 4)
"""Iterations after which a loop may repeat its pattern. A loop over a ring of N buffers repeats after N iterations."""
_MEMORY, _EVIDENCE = 12, 4
"""Iterations of a loop that are remembered, and how many must be alike if non-linear operations are involved."""
UNBOUNDED = "unbounded_"
"""Prefix of a kind's name: the part of its count in loops whose end depends on memory. They are walked once."""
OF_TYPE = "flops_of_"
"""Prefix of a type's name: the flops of tensor cores whose factors have this type."""
SKIPPABLE = "skippable"
"""The instructions after the first branch to the kernel's end that depends on memory. Walks do not take such a
branch."""
COUNTED = (*KINDS, *(UNBOUNDED + name for name in KINDS), *(OF_TYPE + name for name in PRODUCTS), SKIPPABLE)
AT = {name: i for i, name in enumerate(COUNTED)}
_UNBOUNDED = slice(len(KINDS), 2 * len(KINDS))


class EndlessError(Exception):
    """The warp did not reach its end within MOST_STEPS blocks."""


@dataclass
class Ready:
    """A basic block, prepared for walking: the counts of its instructions, and the values that must be computed."""

    counts: npt.NDArray[np.float64]
    """What the block adds to each count in COUNTED; then, per loop, how often the warp reaches its head."""
    actions: list[Callable[[Warp, Lanes], None]]
    target: int | None = None
    """The index of the block that its branch leads to; -1 is the program's end, None means no branch."""
    guard: tuple[int, bool] | None = None
    """The predicate register of its branch, and whether the branch is taken when the predicate is false."""
    otherwise: int | None = None
    """Where the block after it only jumps to, if the branch leads past that block: `@p bra A; bra B; A:` is how a
    compiler may write `@!p bra B; A:`."""

    @property
    def ends(self) -> bool:
        """Whether all lanes that reach its end leave the program."""
        return self.target == -1 and self.guard is None


class Code(Protocol):
    """The parts of a program that a warp needs."""

    blocks: list[Ready]
    headers: set[int]
    """The first blocks of loops."""
    ends: set[int]
    """The blocks that only end the program, and -1."""
    registers: dict[str, int]
    """The index of each register, by name."""
    crooked: list[int]
    """Registers that are written by operations that are not linear in their operands."""

    def does_join(self, number: int, target: int) -> bool: ...


# -- actions of a block -----------------------------------------------------------------------------------------------

Source = int | Lanes | None


def forgetting(targets: Sequence[int]) -> Callable[[Warp, Lanes], None]:
    def forget(warp: Warp, mask: Lanes) -> None:
        for target in targets:
            warp.forget(target)

    return forget


def loading(targets: Sequence[int], source: Source, guard: tuple[int, bool] | None) -> Callable[[Warp, Lanes], None]:
    """Make the action of a load. Loaded values are not known, but lanes that load from one address get equal values."""

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
"""Numbers that stand for loaded values: one row per element of a vector, one column per distinct address."""


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
        if found is None:  # nothing is known about the address: assume a different one per lane
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


def arriving(source: Source, guard: tuple[int, bool] | None, at: int) -> Callable[[Warp, Lanes], None]:
    """Make the action that counts the sectors of bytes that one thread announces for its block."""

    def action(warp: Warp, mask: Lanes) -> None:
        active = mask if guard is None else warp.admitted(mask, guard)
        found = warp.read([source])
        if found is not None and active.any():
            size = warp.share * float(found[0][0].max())
            warp.counts[at] += size / SECTOR
            warp.arrived += size

    return action


def laying_out(width: int, guard: tuple[int, bool] | None) -> Callable[[Warp, Lanes], None]:
    """Make the action that remembers what the warp stores to shared memory."""

    def action(warp: Warp, mask: Lanes) -> None:
        active = mask if guard is None else warp.admitted(mask, guard)
        warp.laid_out += width * int(np.count_nonzero(active))

    return action


def copying_out(at: int) -> Callable[[Warp, Lanes], None]:
    """Make the action of a copy from shared memory by the tensor memory accelerator, which does not say how much it
    moves: what the warp has stored there since the last one, or else what other copies have brought."""

    def action(warp: Warp, mask: Lanes) -> None:
        warp.counts[at] += (warp.laid_out or warp.arrived) / SECTOR
        warp.laid_out = warp.arrived = 0

    return action


def either(
    register: int, in_shared: Callable[[Warp, Lanes], None], elsewhere: Callable[[Warp, Lanes], None]
) -> Callable[[Warp, Lanes], None]:
    """Make the action of a generic access: to shared memory if the register holds a shared address, else to global."""

    def action(warp: Warp, mask: Lanes) -> None:
        (in_shared if warp.is_shared[register] else elsewhere)(warp, mask)

    return action


_ALL = np.ones(WARP, dtype=np.int64)
"""The mask of all lanes. It is compared by identity, too, which is fast and usually enough."""


def _are_equal(one: Lanes, other: Lanes) -> bool:
    return one is other or np.array_equal(one, other)


# -- one warp ---------------------------------------------------------------------------------------------------------


@dataclass
class _Snapshot:
    """The state of the warp when it came to the head of a loop."""

    registers: npt.NDArray[np.int64]
    known: npt.NDArray[np.bool_]
    counts: npt.NDArray[np.float64]
    mask: Lanes
    compared: int
    """How many comparisons had been made."""


class Warp:
    """The lanes of one warp. Each lane is at a block of its own. The lanes at the lowest block run first, so that
    diverged lanes meet again."""

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
        warps = -(-math.prod(block) // WARP)
        self.share = min(2, warps) / warps
        """How much of what one warp does for its block counts for this warp. At most two warps stand for all."""
        self.laid_out = self.arrived = 0.0
        """Bytes that the warp has stored to shared memory since the last copy from there, and its share of those that
        copies to there have brought."""
        self._program = program
        self.registers = np.zeros((len(program.registers), WARP), dtype=np.int64)
        self._rows = list(self.registers)
        """The rows of `registers`. Indexing a list is several times as fast as indexing an array."""
        self.known = bytearray(len(program.registers))
        """For each register: whether its value is known."""
        self._has_value = bytearray(len(program.registers))
        """For each register: whether it has a value at all, possibly one that only stands for loaded data."""
        for name, lanes in given.items():
            if name in program.registers:
                self.registers[program.registers[name]] = lanes
                self.known[program.registers[name]] = self._has_value[program.registers[name]] = True
        self.is_shared = [False] * len(program.registers)
        """For each register: whether it holds a generic address that points to shared memory."""
        self.counts = np.zeros(len(program.blocks[0].counts))
        self._entered: dict[int, npt.NDArray[np.float64]] = {}
        """The counts when the warp last came to the head of each loop."""
        self.compared: list[tuple[int, Lanes]] = []
        """For each comparison: the register that it was written to, and the difference of its operands."""
        self._mask, self._is_full = np.zeros(WARP, dtype=np.int64), False
        self._at = np.where(thread < block[0] * block[1] * block[2], 0, -1)
        self._together = None if (self._at < 0).any() else 0
        """The block that all lanes are at; None if they are at several."""
        self._seen: dict[int, list[_Snapshot]] = {}
        self._before_skippable: float | None = None
        """The instructions up to the first branch to the program's end that depends on memory."""

    def read(self, sources: Sequence[Source]) -> tuple[list[Lanes], bool] | None:
        """The values of the sources, and whether all are known; None if a source has no value."""
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
        self.known[target] = sure  # lanes that use the register are assumed to have written it
        self._has_value[target] = True

    def admitted(self, mask: Lanes, guard: tuple[int, bool]) -> Lanes:
        """The lanes whose predicate lets them through; all lanes if the predicate is not known."""
        register, negated = guard
        if not self.known[register]:
            return mask
        admitted: Lanes = mask & ((self._rows[register] == 0) == negated)
        return admitted

    def run(self) -> None:
        """Run all lanes from the first block to the end. Raises EndlessError if that takes MOST_STEPS blocks."""
        blocks, headers = self._program.blocks, self._program.headers
        for _ in range(MOST_STEPS):
            number, mask, lanes = self._next()
            if number < 0:
                self._count_skippable()
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

    def _count_skippable(self) -> None:
        if self._before_skippable is not None:
            self.counts[AT[SKIPPABLE]] = self.counts[AT["instructions"]] - self._before_skippable

    def _next(self) -> tuple[int, Lanes, int]:
        """The next block, the lanes that are at it, and their number. The block is -1 once all lanes have ended."""
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
        elif not self.known[block.guard[0]]:
            # The predicate depends on memory: fall through. At the end of a loop that is one round of it. This is right
            # where the loop waits for other blocks, and almost right where it tries again until something fits. A loop
            # through data of an unknown length needs more, so what the round did is counted as unbounded, too.
            if block.otherwise is not None:
                after, target = target, block.otherwise
            if target in self._program.ends and self._before_skippable is None:
                self._before_skippable = float(self.counts[AT["instructions"]])
            self._go(mask, after)
            if target in self._entered and target <= number and not self._program.does_join(after, target):
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
        """At the head of a loop: if the last iterations were alike, count all further iterations like them at once."""
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
        """How many more iterations will be like the last two, in which every value changed by the same amount. Results
        of non-linear operations must have done so in all remembered iterations, and in at least _EVIDENCE of them."""
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
        """How many iterations remain before the result of a comparison may change."""
        last = self.compared[before.compared : now.compared]
        previous = self.compared[earlier.compared : before.compared]
        if [target for target, _ in last] != [target for target, _ in previous]:  # the iterations took different paths
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
