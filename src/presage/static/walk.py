"""Walks a kernel's PTX as a warp would: which way it branches, how often its loops run, which memory it accesses.

Only the integers that branches and addresses depend on are computed, for one warp's 32 lanes at a time, with the real
sizes of the launch. Values loaded from memory are unknown: they decide no branch. In an address, arbitrary numbers
stand for them, equal ones where lanes load from the same place. Once a loop's integers change by the same amounts in
each iteration, its iterations are counted, not walked. So a walk takes milliseconds, needs no GPU, and counts what a
disassembly cannot.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from presage.static import ptx
from presage.static.lane_integers import (
    FLOATS,
    KNOWN,
    LINEAR,
    WARP,
    Lanes,
    first,
    operation,
    sectors,
    shared_passes,
    wrap,
)
from presage.static.ptx import Entry, Instruction
from presage.static.warp import (
    AT,
    COUNTED,
    OF_TYPE,
    SKIPPABLE,
    UNBOUNDED,
    EndlessError,
    Ready,
    Warp,
    accessing,
    arriving,
    comparing,
    computing,
    copying_out,
    either,
    forgetting,
    laying_out,
    loading,
)

Argument = int | bytes | None
"""An integer, the bytes of a struct, or None for anything else."""
_POINTERS = 40
_LOOP = "loop_"
"""Prefix of a loop's name, which ends with its number and the number of enclosing loops. A loop's count is how often a
warp reaches its head."""
_MOST_JUMPS = 8
_FRACTION = 0.382
"""Position along the grid of the block that is walked. A second block is at the same distance from the grid's end."""
_MORE_PAIRS, _STEPS = 6, (0.8191725134, 0.6710436067, 0.5497004779)
"""Where a module's blocks differ, so many more pairs are walked. From one to the next, the shares of the grid's axes
advance by _STEPS (a low-discrepancy sequence), so that the pairs cover the grid."""

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
_SHAPE = re.compile(r"m(\d{1,4})n(\d{1,4})k(\d{1,4})")
_FACTORS = {
    **{"bf16": "bf16", "tf32": "tf32", "f64": "fp64"},
    **dict.fromkeys(("s8", "u8", "s4", "u4", "b1"), "int8"),
    **dict.fromkeys(("e4m3", "e5m2", "e3m2", "e2m3", "e2m1"), "fp8"),
}
_COPY_OUT = re.compile(r"cp\.(reduce\.)?async\.bulk\.(tensor\.\dd\.)?global\.")
_BITS = {"8": 1, "16": 2, "32": 4, "64": 8, "128": 16}
_ADDRESS = re.compile(r"\[\s*([^\s+\]]+)\s*(?:\+\s*(-?\w+))?\s*\]")
_ONE = np.ones(WARP, dtype=np.int64)
_NUMBER = re.compile(r"-?(?:0x[0-9a-fA-F]{1,16}|0|[1-9]\d{0,19})U?$", re.ASCII)


def of_launch(
    text: str, name: str, integers: Sequence[int], grid: Sequence[int], block: Sequence[int]
) -> dict[str, float] | None:
    """Counts of what a warp of a bare kernel's launch executes, or None if the code cannot be followed to its end.
    `integers` are the values of the 32-bit parameters, in order."""
    entry = ptx.parse(text, name)
    rest = iter(integers)
    kinds = entry.parameters.values() if entry else ()
    arguments = [None if kind.endswith("64") else next(rest, 0) for kind in kinds]
    return _followed(entry, arguments, grid, block, wmma=0)


def of_call(
    text: str, name: str, arguments: Sequence[Argument], grid: Sequence[int], block: Sequence[int]
) -> dict[str, float] | None:
    """The same for a module's launch, with an argument for every parameter. Here `wmma` counts among the tensor cores'
    flops, which are counted by type, too, and so are instructions that memory may skip. For bare kernels they are not,
    since the trees of `learned` were trained on such counts."""
    return _followed(ptx.parse(text, name), arguments, grid, block, wmma=1)


def _followed(
    entry: Entry | None, arguments: Sequence[Argument], grid: Sequence[int], block: Sequence[int], wmma: int
) -> dict[str, float] | None:
    try:
        counts = walk(entry, arguments, tuple(grid), tuple(block), joins=wmma == 1) if entry else None  # type: ignore[arg-type]
    except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError):
        return None  # PTX that no compiler has written
    if counts is None:
        return None
    for prefix in ("", UNBOUNDED):
        if flops := wmma * counts.pop(f"{prefix}wmma_flops", 0.0):
            counts[f"{prefix}tensor_flops"] = counts.get(f"{prefix}tensor_flops", 0.0) + flops
    return counts if wmma else {name: n for name, n in counts.items() if not name.startswith((OF_TYPE, SKIPPABLE))}


def walk(
    entry: Entry,
    arguments: Sequence[Argument],
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    joins: bool = False,
) -> dict[str, float] | None:
    """Walk the first and the last warp of a block, and those of a second block if it differs. Return the mean of their
    counts by kind (`parted` splits them), or None if a warp does not reach its end. `arguments` are the parameters'
    values. Pointers, which have none, get addresses that are far apart. joins: whether a branch backwards to where the
    code after it goes, too, is no end of a loop, and blocks from the whole grid are walked if some differ. Neither was
    so in what `learned` was trained on."""
    if len(arguments) > len(entry.parameters):
        return None
    program = _Program.of(entry, joins)
    parameters: dict[str, int] = {}
    for number, (name, kind) in enumerate(entry.parameters.items()):
        value = arguments[number] if number < len(arguments) else None
        if isinstance(value, bytes):
            parameters |= program.members(name, value)
            continue
        unknown = (number + 1) << _POINTERS if kind.endswith("64") else 0
        parameters[name] = unknown if value is None else value
    warps = -(-block[0] * block[1] * block[2] // WARP)
    ends = sorted({0, warps - 1})

    def ran(place: tuple[int, int, int], warp: int) -> npt.NDArray[np.float64]:
        each = Warp(program, parameters, warp, place, grid, block)
        each.run()
        return each.counts

    pairs = [_pair(grid), *(_pairs(grid) if joins else ())]
    try:
        walked = [ran(pairs[0][0], warp) for warp in ends]
        others = [ran(place, ends[0]) for place in (pairs[0][1], *itertools.chain(*pairs[1:2]))]
        if not all(np.array_equal(walked[0], other) for other in others):
            rest = [place for pair in pairs for place in pair][1:]
            walked += [*others, *(ran(place, ends[0]) for place in rest[len(others) :])]
            walked += [ran(place, warp) for place in rest for warp in ends[1:]]
    except EndlessError:
        return None
    mean = np.mean(walked, axis=0)
    names = (*COUNTED, *program.loops)
    return {name: float(count) for name, count in zip(names, mean, strict=True) if count or name in program.loops}


def parted(counts: Mapping[str, float]) -> tuple[dict[str, float], dict[str, float]]:
    """Split counts into all that a warp executes, by kind, and the part in loops whose end depends on memory."""
    every = {name: count for name, count in counts.items() if not name.startswith((UNBOUNDED, OF_TYPE, _LOOP))}
    unbounded = {name: count for name, count in counts.items() if name.startswith(UNBOUNDED)}
    return every, {name.removeprefix(UNBOUNDED): count for name, count in unbounded.items()}


def rounds(counts: Mapping[str, float]) -> list[tuple[int, float]]:
    """For each loop, in order: how many loops enclose it, and how often a warp goes through it."""
    return [(int(name.rpartition("_")[2]), count) for name, count in counts.items() if name.startswith(_LOOP)]


def _pair(grid: tuple[int, int, int]) -> list[tuple[int, int, int]]:
    """Two blocks, one as far from the first block as the other is from the last. If work grows linearly along the grid,
    or along rows into which block numbers are divided (as under a causal mask), their mean is the mean of all blocks.

    >>> _pair((3, 1, 1)), _pair((100, 2, 1))
    ([(1, 0, 0), (1, 0, 0)], [(76, 0, 0), (23, 1, 0)])
    """
    total = math.prod(grid)
    number = int(_FRACTION * total)
    return [(n % grid[0], n // grid[0] % grid[1], n // (grid[0] * grid[1])) for n in (number, total - 1 - number)]


def _pairs(grid: tuple[int, int, int]) -> list[list[tuple[int, int, int]]]:
    """More such pairs, from the whole grid, since work may depend on several of its axes: blocks on one side of a
    matrix's diagonal may have none.

    >>> _pairs((100, 10, 1))[:2]
    [[(31, 1, 0), (68, 8, 0)], [(13, 8, 0), (86, 1, 0)]]
    """
    found = []
    for number in range(1, _MORE_PAIRS + 1):
        x, y, z = (int((0.5 + number * step) % 1.0 * size) for step, size in zip(_STEPS, grid, strict=True))
        found.append([(x, y, z), (grid[0] - 1 - x, grid[1] - 1 - y, grid[2] - 1 - z)])
    return found


# -- the prepared program ---------------------------------------------------------------------------------------------


class _Program:
    """An entry as blocks of closures over numbered registers. The parameters are registers, too."""

    @staticmethod
    @lru_cache(maxsize=8)
    def of(entry: Entry, joins: bool) -> _Program:
        return _Program(entry, joins)

    def __init__(self, entry: Entry, joins: bool) -> None:
        self.entry, self._joins = entry, joins
        self.registers: dict[str, int] = {}
        self.crooked: list[int] = []
        """Registers that are written by operations that are not linear in their operands."""
        self._members: dict[str, dict[str, tuple[int, int]]] = {}
        """By struct parameter: the members that are read, by register name, as their first byte and the byte after."""
        self.loops = [f"{_LOOP}{number}_{depth}" for number, depth in enumerate(ptx.depths(entry.loops))]
        self._shared = _shared_pointers(entry)
        self._copies_out = any(_copies_out(each) for block in entry.blocks for each in block.instructions)
        needed = _needed(entry)
        self.blocks = [self._block(block.instructions, needed) for block in entry.blocks]
        for number, (start, _) in enumerate(entry.loops):
            self.blocks[start].counts[len(COUNTED) + number] = 1
        for number, (block, jump) in enumerate(itertools.pairwise(self.blocks)):
            if block.guard and block.target == number + 2 and len(entry.blocks[number + 1].instructions) == 1:
                block.otherwise = jump.target if jump.guard is None else None
        only_end = (len(block.instructions) == 1 for block in entry.blocks)
        self.ends = {-1, *(n for n, (b, only) in enumerate(zip(self.blocks, only_end, strict=True)) if only and b.ends)}
        self.headers = {b.target for n, b in enumerate(self.blocks) if b.target is not None and 0 <= b.target <= n}

    def does_join(self, number: int, target: int) -> bool:
        """Whether all ways from a block lead to the target, as far as jumps without a condition tell."""
        for _ in range(_MOST_JUMPS if self._joins else 0):
            if number == target:
                return True
            if number < 0 or number >= len(self.blocks) or self.blocks[number].guard is not None:
                return False
            after = self.blocks[number].target
            number = number + 1 if after is None else after
        return False

    def register(self, name: str) -> int:
        return self.registers.setdefault(name, len(self.registers))

    def _block(self, instructions: Sequence[Instruction], needed: set[str]) -> Ready:
        ready = Ready(np.zeros(len(COUNTED) + len(self.loops)), [])
        for instruction in instructions:
            kind = classify(instruction)
            ready.counts[AT["instructions"]] += 1
            ready.counts[AT[kind]] += 1
            if kind == "tensor":
                flops = "wmma_flops" if instruction.root == "wmma" else "tensor_flops"
                ready.counts[AT[flops]] += _tensor_flops(instruction)
                ready.counts[AT[OF_TYPE + _factors(instruction)]] += _tensor_flops(instruction)
            if kind == "branch":
                self._end(ready, instruction)
            elif kind in _ACCESSES:
                self._access(ready, instruction, kind)
            if "expect_tx" in instruction.parts:
                ready.actions.append(self._arrival(instruction))
            if any(name in needed for name in _written(instruction)):
                ready.actions.append(self._computation(instruction))
                if any(name in self._shared for name in _written(instruction)):
                    ready.actions.append(self._pointing(instruction))
        return ready

    def _end(self, ready: Ready, instruction: Instruction) -> None:
        if instruction.root == "call":
            return
        if instruction.guard:
            ready.guard = self._guard(instruction.guard)
        ready.target = self.entry.labels.get(instruction.operands[0], -1) if instruction.root == "bra" else -1

    def _guard(self, guard: str) -> tuple[int, bool]:
        return self.register(guard.removeprefix("!")), guard.startswith("!")

    def _access(self, ready: Ready, instruction: Instruction, kind: str) -> None:
        """Add an action for each address in an instruction's operands; an asynchronous copy has two."""
        addresses = [each for each in instruction.operands if each.startswith("[")]
        guard = self._guard(instruction.guard) if instruction.guard else None
        width = _width(instruction)
        if self._copies_out and kind == "shared_store":
            ready.actions.append(laying_out(width, guard))
        if _copies_out(instruction):
            ready.actions.append(copying_out(AT["store_sectors"]))
        for number, text in enumerate(addresses[:2] if kind == "async_copy" else addresses[:1]):
            found = _ADDRESS.match(text)
            if found is None or "bulk" in instruction.opcode:
                continue
            shared = ".shared" in instruction.opcode and not (kind == "async_copy" and number == 1)
            offset = _integer(found[2]) if found[2] and _NUMBER.match(found[2]) else 0
            source = self._source(found[1])
            in_shared = accessing(source, offset, width, guard, shared_passes, AT["shared_wavefronts"])
            at = AT[_SECTORS.get(kind, "load_sectors")]
            elsewhere = accessing(source, offset, width, guard, sectors, at)
            if shared or kind.startswith("shared"):
                ready.actions.append(in_shared)
            elif found[1] in self._shared and "global" not in instruction.parts:
                ready.actions.append(either(self.register(found[1]), in_shared, elsewhere))
            else:
                ready.actions.append(elsewhere)

    def _arrival(self, instruction: Instruction) -> Callable[[Warp, Lanes], None]:
        """Make the action that counts the bytes which copies by the tensor memory accelerator will bring, and which one
        thread of the block announces to a barrier. The copies themselves do not say how much they move."""
        guard = self._guard(instruction.guard) if instruction.guard else None
        return arriving(self._source(instruction.operands[-1]), guard, AT["load_sectors"])

    def _source(self, text: str) -> int | Lanes | None:
        """The index of a register, or the value of a constant; None if the operand is not known."""
        if text.startswith("%"):
            return self.register(text)
        if _NUMBER.match(text):
            return np.full(WARP, _integer(text), dtype=np.int64)
        if text in self.entry.shared:
            return np.full(WARP, self.entry.shared[text], dtype=np.int64)
        if text in self.entry.parameters:
            return self.register(text)
        if text.isidentifier():  # a register declared inside braces, as in inline assembly
            return self.register(text)
        return None

    def members(self, name: str, content: bytes) -> dict[str, int]:
        """The values of the members that are read of a struct with this content, by register name."""
        return {
            register: int.from_bytes(content[start:end], "little", signed=True)
            for register, (start, end) in self._members.get(name, {}).items()
            if end <= len(content)
        }

    def _parameter(
        self, instruction: Instruction, targets: Sequence[int], guard: tuple[int, bool] | None
    ) -> Callable[[Warp, Lanes], None]:
        """Make the action that reads a parameter, or consecutive members of a struct."""
        found = _ADDRESS.match(instruction.operands[1])
        name = found[1] if found else ""
        if found is None or name not in self.entry.parameters:
            return forgetting(targets)
        names = [name] * len(targets)
        if self.entry.parameters[name] == "b8":
            begin, size = _integer(found[2] or "0"), int(instruction.parts[-1][1:]) // 8
            starts = range(begin, begin + size * len(targets), size)
            places = {f"{name}+{start}:{size}": (start, start + size) for start in starts}
            self._members.setdefault(name, {}).update(places)
            names = list(places)
        reads = [
            computing(target, [self.register(name)], first, wrap(instruction), guard)
            for target, name in zip(targets, names, strict=True)
        ]

        def read(warp: Warp, mask: Lanes) -> None:
            for each in reads:
                each(warp, mask)

        return reads[0] if len(reads) == 1 else read

    def _pointing(self, instruction: Instruction) -> Callable[[Warp, Lanes], None]:
        """Make the action that records whether the written registers hold generic addresses of shared memory."""
        targets = [self.register(name) for name in _written(instruction)]
        made = _makes_shared(instruction)
        sources = [] if instruction.root not in _PASSING_ON else instruction.operands[1:]
        registers = [self.register(name) if name in self._shared else None for name in sources]
        chooser = self.register(sources[2]) if instruction.root == "selp" else None

        def point(warp: Warp, mask: Lanes) -> None:
            given = registers
            if chooser is not None and warp.known[chooser]:
                given = registers[:1] if warp.registers[chooser].any() else registers[1:2]
            is_shared = made or any(register is not None and warp.is_shared[register] for register in given)
            for target in targets:
                warp.is_shared[target] = is_shared

        return point

    def _computation(self, instruction: Instruction) -> Callable[[Warp, Lanes], None]:
        targets = [self.register(name) for name in _written(instruction)]
        guard = self._guard(instruction.guard) if instruction.guard else None
        root, kind = instruction.root, instruction.parts[-1] if instruction.parts else ""
        if root == "mbarrier" and {"try_wait", "test_wait"}.intersection(instruction.parts):
            return computing(targets[0], [_ONE], first, wrap(instruction), None)  # what it waits for is there
        sources = [self._source(text) for text in instruction.operands[1:]]
        compute = operation(instruction)
        if root == "ld" and "param" in instruction.parts:
            return self._parameter(instruction, targets, guard)
        if root == "ld":
            found = _ADDRESS.match(instruction.operands[1])
            return loading(targets, self._source(found[1]) if found else None, guard)
        if root not in LINEAR:
            self.crooked += targets
        if len(targets) != 1 or compute is None or any(source is None for source in sources):
            return forgetting(targets)
        if root == "setp":
            return comparing(targets[0], sources, compute, kind, guard)
        return computing(targets[0], sources, compute, wrap(instruction), guard)


def _copies_out(instruction: Instruction) -> bool:
    """Whether an instruction makes the tensor memory accelerator copy a tile from shared memory."""
    return _COPY_OUT.match(instruction.opcode) is not None


def _needed(entry: Entry) -> set[str]:
    """The registers that branches and addresses depend on, directly or indirectly."""
    written: dict[str, list[Instruction]] = {}
    wanted: list[str] = []
    for block in entry.blocks:
        for instruction in block.instructions:
            for name in _written(instruction):
                written.setdefault(name, []).append(instruction)
            kind = classify(instruction)
            announces = "expect_tx" in instruction.parts
            if kind == "branch" or kind in _ACCESSES or announces:
                wanted += [instruction.guard.removeprefix("!")] if instruction.guard else []
            if announces:
                wanted += _names(instruction.operands[-1])
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
    """The registers that may hold generic addresses of shared memory."""
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


def _tensor_flops(instruction: Instruction) -> float:
    """The flops of one matrix multiplication per warp. Four warps share a `wgmma`."""
    shape = _SHAPE.search(instruction.opcode)
    multiplies = instruction.root == "mma" or {"mma", "mma_async"}.intersection(instruction.parts)
    if shape is None or not multiplies:
        return 0.0
    m, n, k = map(int, shape.groups())
    return 2.0 * m * n * k / (4 if instruction.root == "wgmma" else 1)


def _factors(instruction: Instruction) -> str:
    """The type of the factors of a matrix multiplication. `wmma` does not name it where it is fp16.

    >>> _factors(Instruction("", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", ()))
    'tf32'
    """
    return next((name for part in instruction.parts for name in [_FACTORS.get(part)] if name), "fp16")


def _width(instruction: Instruction) -> int:
    """Bytes that a memory instruction moves per lane."""
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
    value = int(text.removesuffix("U"), 0) % (1 << 64)
    return value - (1 << 64) if value >= 1 << 63 else value
