"""Walks a kernel's PTX as a warp would: which way it branches, how often its loops run, what it touches in memory.

Only the integers that branches and addresses depend on are computed, for one warp's 32 lanes at a time, with the real
sizes of the launch. What is read from memory is unknown: it decides no branch, and where it is part of an address, any
numbers stand for it, the same where lanes read the same place. A loop whose integers change by the same amounts again
and again is counted, not walked. So a walk takes milliseconds, needs no GPU, and counts what a disassembly cannot.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from presage.kernels import ptx
from presage.kernels.lanes import (
    FLOATS,
    KNOWN,
    LINEAR,
    WARP,
    Lanes,
    first,
    operation,
    same,
    sectors,
    shared_passes,
    unsigned32,
    wrap,
)
from presage.kernels.ptx import Entry, Instruction

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
_POINTERS = 40
_FRACTION = 0.382
"""Where along the grid a block is walked, and another one as far from its end."""

_AT = {name: i for i, name in enumerate(KINDS)}
_UNBOUNDED = "unbounded_"
"""Before the name of a kind: of these, what lies in loops that memory ends. They are walked once."""
_COUNTED = (*KINDS, *(_UNBOUNDED + name for name in KINDS))
_ROOTS = {
    **dict.fromkeys(("ex2", "lg2", "rcp", "rsqrt", "sqrt", "sin", "cos", "tanh"), "special"),
    **dict.fromkeys(("mov", "cvta", "selp"), "move"),
    **dict.fromkeys(("shfl", "vote", "match", "redux", "activemask", "elect"), "shuffle"),
    **dict.fromkeys(("bar", "barrier", "membar", "fence", "mbarrier"), "barrier"),
    **dict.fromkeys(("bra", "ret", "exit", "brx", "call", "trap"), "branch"),
    **dict.fromkeys(("atom", "red"), "atomic"),
    **dict.fromkeys(("mma", "wgmma", "wmma", "tcgen05"), "tensor"),
    **dict.fromkeys(("ldmatrix",), "shared_load"),
    **dict.fromkeys(("stmatrix",), "shared_store"),
    "cvt": "convert",
    "cp": "async_copy",
}  # fmt: skip
_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
_BITS = {"8": 1, "16": 2, "32": 4, "64": 8, "128": 16}
_ADDRESS = re.compile(r"\[\s*([^\s+\]]+)\s*(?:\+\s*(-?\w+))?\s*\]")
_NUMBER = re.compile(r"-?(?:0x[0-9a-fA-F]+|\d+)U?$")


def of_launch(
    text: str, name: str, integers: Sequence[int], grid: Sequence[int], block: Sequence[int]
) -> dict[str, float] | None:
    """What a warp of this launch executes, or None where the code has ways that cannot be followed to their end."""
    entry = ptx.parse(text, name)
    try:
        return walk(entry, integers, tuple(grid), tuple(block)) if entry else None  # type: ignore[arg-type]
    except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError):
        return None  # code that no compiler wrote


def walk(
    entry: Entry, integers: Sequence[int], grid: tuple[int, int, int], block: tuple[int, int, int]
) -> dict[str, float] | None:
    """Walk the first and the last warp of a block, and of another if that is not alike; the mean of what they execute,
    by kind (`parted` takes that apart), or None where one does not come to its end. The parameters that are integers
    have these values, in order; pointers are far apart."""
    rest = iter(integers)
    parameters = {
        name: (number + 1) << _POINTERS if kind.endswith("64") else next(rest, 0)
        for number, (name, kind) in enumerate(entry.parameters.items())
    }
    warps = -(-block[0] * block[1] * block[2] // WARP)
    program = _Program.of(entry)
    ends = sorted({0, warps - 1})

    def ran(place: tuple[int, int, int], warp: int) -> npt.NDArray[np.float64]:
        each = _Warp(program, parameters, warp, place, grid, block)
        each.run()
        return each.counts

    try:
        one, other = _pair(grid)
        walked = [ran(one, warp) for warp in ends]
        mirrored = ran(other, ends[0])
        if not np.array_equal(walked[0], mirrored):
            walked += [mirrored, *(ran(other, warp) for warp in ends[1:])]
    except _Endless:
        return None
    mean = np.mean(walked, axis=0)
    return {name: float(count) for name, count in zip(_COUNTED, mean, strict=True) if count}


def parted(counts: Mapping[str, float]) -> tuple[dict[str, float], dict[str, float]]:
    """All that a warp executes, by kind, and what of it lies in loops that memory ends."""
    every = {name: count for name, count in counts.items() if not name.startswith(_UNBOUNDED)}
    return every, {name.removeprefix(_UNBOUNDED): count for name, count in counts.items() if name not in every}


def _pair(grid: tuple[int, int, int]) -> list[tuple[int, int, int]]:
    """Two blocks, one as far from the first as the other from the last: where work grows evenly along the grid, or
    along the rows that its numbers are taken apart into, as under a causal mask, their mean is the mean of all.

    >>> _pair((3, 1, 1)), _pair((100, 2, 1))
    ([(1, 0, 0), (1, 0, 0)], [(76, 0, 0), (23, 1, 0)])
    """
    total = math.prod(grid)
    number = int(_FRACTION * total)
    return [(n % grid[0], n // grid[0] % grid[1], n // (grid[0] * grid[1])) for n in (number, total - 1 - number)]


class _Endless(Exception):  # noqa: N818  no fault: it only takes too long
    """A warp that does not come to its end."""


# -- the program, made ready ------------------------------------------------------------------------------------------


@dataclass
class _Ready:
    """A basic block: what its instructions count for, and what must be computed."""

    counts: npt.NDArray[np.float64]
    actions: list[Callable[[_Warp, Lanes], None]]
    target: int | None = None
    """Where its branch leads; -1 is the end."""
    guard: tuple[int, bool] | None = None
    """The predicate of its branch, and whether that must be false."""


class _Program:
    """An entry as blocks of closures over numbered registers, of which its parameters are some."""

    @staticmethod
    @lru_cache(maxsize=8)
    def of(entry: Entry) -> _Program:
        return _Program(entry)

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self.registers: dict[str, int] = {}
        self.crooked: list[int] = []
        """Registers that an operation gives which is not linear in its operands."""
        self._shared = _shared_pointers(entry)
        needed = _needed(entry)
        self.blocks = [self._block(block.instructions, needed) for block in entry.blocks]
        self.headers = {b.target for n, b in enumerate(self.blocks) if b.target is not None and 0 <= b.target <= n}

    def register(self, name: str) -> int:
        return self.registers.setdefault(name, len(self.registers))

    def _block(self, instructions: Sequence[Instruction], needed: set[str]) -> _Ready:
        ready = _Ready(np.zeros(len(_COUNTED)), [])
        for instruction in instructions:
            kind = classify(instruction)
            ready.counts[_AT["instructions"]] += 1
            ready.counts[_AT[kind]] += 1
            if kind == "tensor":
                ready.counts[_AT["tensor_flops"]] += _tensor_flops(instruction.opcode)
            if kind == "branch":
                self._end(ready, instruction)
            elif kind in _ACCESSES:
                self._access(ready, instruction, kind)
            if any(name in needed for name in _written(instruction)):
                ready.actions.append(self._computation(instruction))
                if any(name in self._shared for name in _written(instruction)):
                    ready.actions.append(self._pointing(instruction))
        return ready

    def _end(self, ready: _Ready, instruction: Instruction) -> None:
        if instruction.root == "call":
            return
        if instruction.guard:
            ready.guard = self._guard(instruction.guard)
        ready.target = self.entry.labels.get(instruction.operands[0], -1) if instruction.root == "bra" else -1

    def _guard(self, guard: str) -> tuple[int, bool]:
        return self.register(guard.removeprefix("!")), guard.startswith("!")

    def _access(self, ready: _Ready, instruction: Instruction, kind: str) -> None:
        """Each address that an instruction names is one access; an asynchronous copy names two."""
        addresses = [each for each in instruction.operands if each.startswith("[")]
        guard = self._guard(instruction.guard) if instruction.guard else None
        width = _width(instruction)
        for number, text in enumerate(addresses[:2] if kind == "async_copy" else addresses[:1]):
            found = _ADDRESS.match(text)
            if found is None or "bulk" in instruction.opcode:
                continue
            shared = ".shared" in instruction.opcode and not (kind == "async_copy" and number == 1)
            offset = _integer(found[2]) if found[2] and _NUMBER.match(found[2]) else 0
            source = self._source(found[1])
            in_shared = _accessing(source, offset, width, guard, shared_passes, _AT["shared_wavefronts"])
            at = _AT[_SECTORS.get(kind, "load_sectors")]
            elsewhere = _accessing(source, offset, width, guard, sectors, at)
            if shared or kind.startswith("shared"):
                ready.actions.append(in_shared)
            elif found[1] in self._shared and "global" not in instruction.parts:
                ready.actions.append(_either(self.register(found[1]), in_shared, elsewhere))
            else:
                ready.actions.append(elsewhere)

    def _source(self, text: str) -> int | Lanes | None:
        """A register's number, or the value of something constant; None for what is not known."""
        if text.startswith("%"):
            return self.register(text)
        if _NUMBER.match(text):
            return np.full(WARP, _integer(text), dtype=np.int64)
        if text in self.entry.shared:
            return np.full(WARP, self.entry.shared[text], dtype=np.int64)
        if text in self.entry.parameters:
            return self.register(text)
        if text.isidentifier():  # declared inside braces, as inline assembly does
            return self.register(text)
        return None

    def _pointing(self, instruction: Instruction) -> Callable[[_Warp, Lanes], None]:
        """Remembers whether what was written is an address of shared memory."""
        targets = [self.register(name) for name in _written(instruction)]
        made = _makes_shared(instruction)
        sources = [] if instruction.root not in _PASSING_ON else instruction.operands[1:]
        registers = [self.register(name) if name in self._shared else None for name in sources]
        chooser = self.register(sources[2]) if instruction.root == "selp" else None

        def point(warp: _Warp, mask: Lanes) -> None:
            given = registers
            if chooser is not None and warp.known[chooser]:
                given = registers[:1] if warp.registers[chooser].any() else registers[1:2]
            is_shared = made or any(register is not None and warp.is_shared[register] for register in given)
            for target in targets:
                warp.is_shared[target] = is_shared

        return point

    def _computation(self, instruction: Instruction) -> Callable[[_Warp, Lanes], None]:
        targets = [self.register(name) for name in _written(instruction)]
        guard = self._guard(instruction.guard) if instruction.guard else None
        root, kind = instruction.root, instruction.parts[-1] if instruction.parts else ""
        sources = [self._source(text) for text in instruction.operands[1:]]
        compute = operation(instruction)
        if root == "ld" and "param" in instruction.parts:
            found = _ADDRESS.match(instruction.operands[1])
            name = found[1] if found else ""
            sources, compute = [self._source(name)], first if name in self.entry.parameters else None
        elif root == "ld":
            found = _ADDRESS.match(instruction.operands[1])
            return _loading(targets, self._source(found[1]) if found else None, guard)
        elif root not in LINEAR:
            self.crooked += targets
        if len(targets) != 1 or compute is None or any(source is None for source in sources):
            return _forgetting(targets)
        if root == "setp":
            return _comparing(targets[0], sources, compute, kind, guard)
        return _computing(targets[0], sources, compute, wrap(instruction), guard)


def _needed(entry: Entry) -> set[str]:
    """The registers that branches and addresses depend on, however indirectly."""
    written: dict[str, list[Instruction]] = {}
    wanted: list[str] = []
    for block in entry.blocks:
        for instruction in block.instructions:
            for name in _written(instruction):
                written.setdefault(name, []).append(instruction)
            kind = classify(instruction)
            if kind == "branch" or kind in _ACCESSES:
                wanted += [instruction.guard.removeprefix("!")] if instruction.guard else []
            if kind in _ACCESSES:
                wanted += [each for text in instruction.operands if text[0] == "[" for each in _names(text)]
    needed: set[str] = set()
    while wanted:
        name = wanted.pop()
        if name in needed:
            continue
        needed.add(name)
        for instruction in written.get(name, ()):
            if instruction.root not in ("ld", "atom"):
                wanted += [each for text in instruction.operands[1:] for each in _names(text)]
            wanted += _names(instruction.guard)
    return needed


def _shared_pointers(entry: Entry) -> set[str]:
    """The registers that may hold addresses of shared memory in the form that could be any memory's."""
    every = [instruction for block in entry.blocks for instruction in block.instructions]
    found = {name for each in every if _makes_shared(each) for name in _written(each)}
    before = 0
    while before < len(found):
        before = len(found)
        for each in every:
            if each.root in _PASSING_ON and any(operand in found for operand in each.operands[1:]):
                found.update(_written(each))
    return found


def _makes_shared(instruction: Instruction) -> bool:
    return instruction.opcode.startswith("cvta.shared")


_PASSING_ON = ("mov", "add", "sub", "mad", "selp")


def _names(text: str) -> list[str]:
    return re.findall(r"[%A-Za-z_$][\w$.]*", text)


_NO_TARGET = ("st", "red", "bra", "ret", "exit", "bar", "barrier", "cp", "membar", "fence", "prefetch", "stmatrix")


def _written(instruction: Instruction) -> list[str]:
    if not instruction.operands or instruction.root in _NO_TARGET or instruction.operands[0].startswith("["):
        return []
    target = instruction.operands[0]
    return _names(target) if target[0] in "{(" else [target]


_ACCESSES = ("global_load", "global_store", "shared_load", "shared_store", "atomic", "async_copy")
_SECTORS = {"global_store": "store_sectors", "atomic": "atomic_sectors"}


def classify(instruction: Instruction) -> str:
    """The kind that an instruction counts as.

    >>> classify(Instruction("", "fma.rn.f32", ())), classify(Instruction("", "ld.global.v4.f32", ()))
    ('fp32', 'global_load')
    """
    root, parts = instruction.root, instruction.parts
    if root in ("ld", "ldu", "st"):
        way = "store" if root == "st" else "load"
        if "param" in parts or "const" in parts:
            return "move"
        if "local" in parts:
            return "local"
        return f"{'shared' if any(part.startswith('shared') for part in parts) else 'global'}_{way}"
    if root == "cp" and not any(part.startswith("shared") for part in parts):
        return "barrier"
    if root == "setp" or root in _ROOTS:
        return _ROOTS.get(root, "integer")
    kinds = [FLOATS[part] for part in parts if part in FLOATS]
    return kinds[-1] if kinds else "integer" if root in KNOWN else "other"


def _tensor_flops(opcode: str) -> float:
    """What a warp's share of one multiplication of matrices comes to."""
    shape = _SHAPE.search(opcode)
    if shape is None or not re.match(r"(wg)?mma", opcode):
        return 0.0
    m, n, k = map(int, shape.groups())
    return 2.0 * m * n * k / (4 if opcode.startswith("wgmma") else 1)


def _width(instruction: Instruction) -> int:
    """Bytes a lane moves."""
    if instruction.root == "cp":
        sizes = [_integer(each) for each in instruction.operands if _NUMBER.match(each)]
        return sizes[0] if sizes else 16
    if instruction.root in ("ldmatrix", "stmatrix"):
        return 16
    kind = instruction.parts[-1] if instruction.parts else "b32"
    size = _BITS.get(kind.lstrip("busf"), 4)
    vector = next((int(part[1:]) for part in instruction.parts if re.fullmatch(r"v\d", part)), 1)
    return size * vector


def _integer(text: str) -> int:
    value = int(text.removesuffix("U"), 0)
    return value - (1 << 64) if value >= 1 << 63 else value


# -- actions of a block -----------------------------------------------------------------------------------------------

_Source = int | Lanes | None


def _forgetting(targets: Sequence[int]) -> Callable[[_Warp, Lanes], None]:
    def forget(warp: _Warp, mask: Lanes) -> None:
        for target in targets:
            warp.forget(target)

    return forget


def _loading(targets: Sequence[int], source: _Source, guard: tuple[int, bool] | None) -> Callable[[_Warp, Lanes], None]:
    """What is read is not known, but lanes that read the same place read the same."""

    def load(warp: _Warp, mask: Lanes) -> None:
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


def _computing(
    target: int, sources: Sequence[_Source], compute: Callable[..., Lanes], wrap: Any, guard: tuple[int, bool] | None
) -> Callable[[_Warp, Lanes], None]:
    def action(warp: _Warp, mask: Lanes) -> None:
        found = warp.read(sources)
        if found is None:
            warp.forget(target)
        else:
            values, sure = found
            warp.write(target, wrap(compute(*values)), mask if guard is None else warp.admitted(mask, guard), sure)

    return action


def _comparing(
    target: int, sources: Sequence[_Source], compare: Callable[..., Any], kind: str, guard: tuple[int, bool] | None
) -> Callable[[_Warp, Lanes], None]:
    read = unsigned32 if kind == "u32" else same

    def action(warp: _Warp, mask: Lanes) -> None:
        found = warp.read(sources)
        if found is None or not found[1]:
            warp.forget(target)
            return
        left, right = map(read, found[0])
        warp.compared.append(left - right)
        admitted = mask if guard is None else warp.admitted(mask, guard)
        warp.write(target, compare(left, right).astype(np.int64), admitted, sure=True)

    return action


def _accessing(
    source: _Source, offset: int, width: int, guard: tuple[int, bool] | None, count: Callable[..., int], at: int
) -> Callable[[_Warp, Lanes], None]:
    seen: dict[bytes, int] = {}

    def action(warp: _Warp, mask: Lanes) -> None:
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


def _either(
    register: int, in_shared: Callable[[_Warp, Lanes], None], elsewhere: Callable[[_Warp, Lanes], None]
) -> Callable[[_Warp, Lanes], None]:
    """An access to whichever memory the register's address is of."""

    def action(warp: _Warp, mask: Lanes) -> None:
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


class _Warp:
    """The lanes of one warp, each at a block of its own; those furthest behind go first, and so they meet again."""

    def __init__(
        self,
        program: _Program,
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
        self.known = np.zeros(len(program.registers), dtype=bool)
        self._has_value = self.known.copy()
        """Whether a register has a value at all, be it one that only stands for what memory holds."""
        for name, lanes in given.items():
            if name in program.registers:
                self.registers[program.registers[name]] = lanes
                self.known[program.registers[name]] = self._has_value[program.registers[name]] = True
        self.is_shared = [False] * len(program.registers)
        """Of registers, whether they hold an address of shared memory that could be any memory's."""
        self.counts = np.zeros(len(_COUNTED))
        self._entered: dict[int, npt.NDArray[np.float64]] = {}
        """The counts when the warp last came to the head of each loop."""
        self.compared: list[Lanes] = []
        self._mask, self._is_full = np.zeros(WARP, dtype=np.int64), False
        self._at = np.where(thread < block[0] * block[1] * block[2], 0, -1)
        self._together = None if (self._at < 0).any() else 0
        """The block that all lanes are at, if they are."""
        self._seen: dict[int, list[_Snapshot]] = {}

    def read(self, sources: Sequence[_Source]) -> tuple[list[Lanes], bool] | None:
        """The values, and whether they are known; None where one has none."""
        values: list[Lanes] = []
        sure = True
        for source in sources:
            if isinstance(source, int):
                if not self.known[source]:
                    if not self._has_value[source]:
                        return None
                    sure = False
                values.append(self.registers[source])
            elif source is None:
                return None
            else:
                values.append(source)
        return values, sure

    def forget(self, target: int) -> None:
        self.known[target] = self._has_value[target] = False

    def write(self, target: int, values: Lanes, mask: Lanes, sure: bool) -> None:
        if self._is_full and mask is self._mask:
            self.registers[target] = values
        else:
            np.copyto(self.registers[target], values, where=mask != 0)
        self.known[target] = sure  # where it is used, its lanes are those that have written it
        self._has_value[target] = True

    def admitted(self, mask: Lanes, guard: tuple[int, bool]) -> Lanes:
        """The lanes that a predicate lets through; all of them where it is not known."""
        register, negated = guard
        if not self.known[register]:
            return mask
        admitted: Lanes = mask & ((self.registers[register] == 0) == negated)
        return admitted

    def run(self) -> None:
        """From the first block to the end of all lanes; _Endless where that takes too many."""
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
            self.counts[_AT["lanes"]] += block.counts[_AT["instructions"]] * lanes
            for action in block.actions:
                action(self, mask)
            self._branch(block, number, mask)
        raise _Endless

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

    def _branch(self, block: _Ready, number: int, mask: Lanes) -> None:
        after = number + 1 if number + 1 < len(self._program.blocks) else -1
        target = after if block.target is None else block.target
        if block.guard is None:
            self._go(mask, target)
        elif not self.known[block.guard[0]]:  # what memory holds decides: go on, and out of a loop
            self._go(mask, after)
            if target in self._entered and target <= number:
                since = self.counts - self._entered[target]
                self.counts[len(KINDS) :] += since[: len(KINDS)] - since[len(KINDS) :]
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
        now = _Snapshot(self.registers.copy(), self.known.copy(), self.counts.copy(), mask, len(self.compared))
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
        step = now.registers - before.registers
        if not (
            _are_equal(now.mask, before.mask)
            and _are_equal(now.mask, earlier.mask)
            and np.array_equal(now.counts - before.counts, before.counts - earlier.counts)
            and np.array_equal(now.known, before.known)
            and np.array_equal(step[now.known], (before.registers - earlier.registers)[now.known])
            and self._straight(step, seen)
        ):
            return 0
        return self._rounds_left(now, before, earlier)

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
        if len(last) != len(previous):
            return 0
        active = now.mask != 0
        rounds = np.iinfo(np.int64).max
        for difference, was in zip(last, previous, strict=True):
            change = (difference - was)[active]
            moving = change != 0
            towards = moving & ((difference[active] < 0) == (change > 0))
            if towards.any():
                left = np.abs(difference[active][towards]) // np.abs(change[towards])
                rounds = min(rounds, int(left.min()))
        return 0 if rounds == np.iinfo(np.int64).max else max(0, rounds - 1)
