"""Counts how often a warp executes machine instructions, by the pipeline of a multiprocessor that each one occupies.

A walk counts PTX instructions. In PTX a division is one instruction, and so is reading a constant; the machine code has
eight instructions for the division and none for the constant. But the machine code has the same loops, so that each of
its instructions runs as often as its loop. The pipelines are those in Nsight Compute's documentation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from presage.static import ptx, sass
from presage.static.sass import Instruction

_OPCODES: Mapping[str, str] = {
    "fma": "FFMA FADD FMUL FFMA2 FADD2 FMUL2 FFMA32I FADD32I FMUL32I",
    "multiply": "IMAD IMAD32I IMUL IDP IDP4A",
    "special": "MUFU F2I I2F F2F FRND POPC FLO BREV I2I",
    "fp16": "HADD2 HFMA2 HMUL2 HADD2_32I HFMA2_32I HMUL2_32I HSETP2 HSET2 HMNMX2",
    "fp64": "DADD DFMA DMUL DSETP DMNMX",
    "memory": "LDG LD STG ST LDL STL LDS STS LDSM STSM ATOM ATOMG ATOMS RED REDG REDS LDGSTS SHFL",
    "tensor": "HMMA IMMA DMMA BMMA QMMA OMMA HGMMA IGMMA QGMMA BGMMA",
    "control": "BRA BRX JMP JMX EXIT BSSY BSYNC BREAK CALL RET WARPSYNC YIELD NANOSLEEP BMOV BAR MEMBAR DEPBAR ERRBAR"
    " LDGDEPBAR SYNCS CCTL S2R CS2R S2UR R2UR LDC LDCU VOTE VOTEU",
}
_BY_OPCODE = {opcode: name for name, opcodes in _OPCODES.items() for opcode in opcodes.split()}
PIPES = ("issue", "alu", *_OPCODES)
"""`issue` counts all instructions; `alu` counts those that belong to no other pipeline."""
_SHORT = 8
"""The most instructions between a branch around a subroutine's call and that call."""

Bodies = tuple[tuple[int, Mapping[str, int]], ...]
"""For the code outside loops (depth -1), and then for each loop: how many loops enclose it, and its own instructions by
pipeline, without those of inner loops."""


def pipe(opcode: str) -> str:
    """The pipeline of an instruction.

    >>> pipe("MUFU.RCP"), pipe("FFMA"), pipe("LOP3.LUT"), pipe("ULDC.64")
    ('special', 'fma', 'alu', 'control')
    """
    root = opcode.partition(".")[0]
    return _BY_OPCODE.get(root, "control" if root.startswith("U") else "alu")


def bodies(instructions: Sequence[Instruction]) -> Bodies:
    """Count the instructions of each loop. Subroutines, and calls of them that a branch can skip, are left out: they
    handle rare operands, such as those that the usual code of a division cannot handle."""
    usual = _usual(instructions)
    loops = sass.loops(usual)
    counts: list[Counter[str]] = [Counter() for _ in range(len(loops) + 1)]
    for each in usual:
        around = [(end - start, number) for number, (start, end) in enumerate(loops) if start <= each.address <= end]
        body = counts[min(around)[1] + 1 if around else 0]
        body[pipe(each.opcode)] += 1
        body["issue"] += 1
    return tuple(zip([-1, *ptx.depths(loops)], counts, strict=True))


def executed(code: Bodies, rounds: Sequence[tuple[int, float]]) -> dict[str, float] | None:
    """Machine instructions that a warp executes, by pipeline. None if the machine code's loops are not those that were
    walked, because the compiler has changed them."""
    if [depth for depth, _ in code[1:]] != [depth for depth, _ in rounds]:
        return None
    total: dict[str, float] = {}
    for (_, counts), often in zip(code, (1.0, *(often for _, often in rounds)), strict=True):
        for name, count in counts.items():
            total[name] = total.get(name, 0.0) + often * count
    return total


def _usual(instructions: Sequence[Instruction]) -> list[Instruction]:
    real = [each for each in instructions if each.opcode != "NOP" and not sass.is_trap(each)]
    calls = [number for number, each in enumerate(real) if each.opcode.startswith("CALL")]
    subroutines = [start for number in calls if (start := sass.target(real[number])) is not None]
    end = min(subroutines, default=real[-1].address + 1 if real else 0)
    skipped: set[int] = set()
    for call in calls:
        for before in range(call - 1, max(-1, call - 1 - _SHORT), -1):
            if call + 1 < len(real) and sass.branch_target(real[before]) == real[call + 1].address:
                skipped.update(range(before + 1, call + 1))
    return [each for number, each in enumerate(real) if each.address < end and number not in skipped]
