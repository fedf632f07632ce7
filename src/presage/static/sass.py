"""Disassembles GPU machine code (SASS) and counts its instructions by class."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from presage.core import machine
from presage.core.errors import PresageError
from presage.sandbox import processes, scratch
from presage.sandbox.launch import NOT_STARTED
from presage.sandbox.rules import Rules, program_paths
from presage.static import toolkit

_LINE = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)\s*([^;]*)", re.MULTILINE)
_WIDTHS = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16, "256": 32}

_CLASSES: Mapping[str, str] = {
    "shared_load": "LDS LDSM LDSTM",
    "shared_store": "STS STSM",
    "async_copy": "LDGSTS UBLKCP UBLKPF UBLKRED UTMALDG UTMASTG UTMAREDG UTMAPF UTMACCTL ST_ASYNC STAS",
    "constant_load": "LDC ULDC LDCU",
    "atomic": "ATOM ATOMG ATOMS RED REDG REDS",
    "tensor": "HMMA IMMA DMMA BMMA QMMA OMMA HGMMA IGMMA QGMMA BGMMA UTCHMMA UTCIMMA UTCQMMA UTCOMMA UTCMXQMMA",
    "tensor_memory": "LDTM STTM LDT STT UTCCP UTCSHIFT UVIRTCOUNT UTCATOMSWS UTCBAR",
    "fp32": "FFMA FADD FMUL FFMA2 FADD2 FMUL2 FFMA32I FADD32I FMUL32I FMNMX FMNMX3 FSWZADD UFADD UFFMA UFMUL",
    "fp16": "HADD2 HFMA2 HMUL2 HMNMX2 HADD2_32I HFMA2_32I HMUL2_32I HADD2F BF16_V2",
    "fp64": "DADD DFMA DMUL",
    "integer": "IADD IADD3 IADD32I IMAD IMAD32I IMUL LEA LOP LOP3 SHF SHL SHR IABS IMNMX IMNMX3 VIADD VIADDMNMX VIMNMX"
    " VIMNMX3 VABSDIFF VABSDIFF4 ISCADD POPC FLO BREV PRMT BMSK SGXT IDP IDP4A LOP32I VHMNMX IADD2 IADD64",
    "special_function": "MUFU",
    "convert": "F2F F2I I2F F2FP I2FP F2IP I2IP FRND I2I",
    "compare": "ISETP FSETP HSETP2 DSETP ISET FSET HSET2 PLOP3 PSETP SEL FSEL FCHK P2R R2P FCMP ICMP",
    "move": "MOV MOV32I S2R CS2R S2UR R2UR CS2UR MOVM",
    "warp": "SHFL VOTE VOTEU MATCH REDUX CREDUX ELECT",
    "control": "BRA BRX BRXU JMP JMX JMXU EXIT BSSY BSYNC BREAK CALL RET WARPSYNC YIELD NANOSLEEP KILL BPT BMOV RPCMOV"
    " ACQBULK PREEXIT LEPC BRA_IMM",
    "barrier": "BAR UCGABAR_ARV UCGABAR_WAIT MEMBAR DEPBAR LDGDEPBAR ERRBAR SYNCS ARRIVES WARPGROUP WARPGROUPSET"
    " FENCE CCTL CCTLL CCTLT B2R R2B UTMACMDFLUSH USETMAXREG ENDCOLLECTIVE",
}
_BY_OPCODE = {opcode: name for name, opcodes in _CLASSES.items() for opcode in opcodes.split()}
CLASSES = (
    *(f"global_{way}_{bits}" for way in ("load", "store") for bits in (32, 64, 128)),
    "local_load",
    "local_store",
    *_CLASSES,
    "other",
)
"""Every class of instructions. Opcodes that are not in the table are `other`."""


@dataclass(frozen=True)
class Instruction:
    """One instruction at its place in the kernel's code."""

    address: int
    opcode: str
    operands: str

    @property
    def width(self) -> int:
        """Bytes per thread that a memory instruction moves."""
        return next((_WIDTHS[part] for part in self.opcode.split(".")[1:] if part in _WIDTHS), 4)


@dataclass(frozen=True)
class Mix:
    """Statistics of a kernel's code."""

    classes: Mapping[str, int]
    """Instructions of each class; classes without any are left out."""
    loops: int
    """Number of backward branches."""
    in_loops: Mapping[str, int]
    """The instructions that lie inside some loop, by class."""
    local_bytes: int
    """Bytes per thread that loads from and stores to local memory move, each counted once: spills, and local arrays."""


def classify(opcode: str, operands: str = "") -> str:
    """The class of an instruction.

    >>> classify("LDG.E.128"), classify("HGMMA.64x128x16.F32"), classify("IMAD.MOV.U32"), classify("NEWOP.X")
    ('global_load_128', 'tensor', 'move', 'other')
    """
    root, *modifiers = opcode.split(".")
    if root in ("LDG", "LD", "STG", "ST"):
        width = max((_WIDTHS.get(part, 4) for part in modifiers), default=4)
        return f"global_{'load' if root.startswith('L') else 'store'}_{min(max(width, 4), 16) * 8}"
    if root in ("LDL", "STL"):
        return "local_load" if root == "LDL" else "local_store"
    if (root == "IMAD" and "MOV" in modifiers) or (root == "HFMA2" and operands.split(", ")[1:3] == ["-RZ", "RZ"]):
        return "move"
    found = _BY_OPCODE.get(root)
    if found is None and root.startswith("U"):
        found = _BY_OPCODE.get(root[1:])
    return found or "other"


def mix(instructions: Sequence[Instruction]) -> Mix:
    """Count a kernel's instructions; padding after its end does not count."""
    instructions = [each for each in instructions if each.opcode != "NOP" and not is_trap(each)]
    ranges = [
        (start, each.address)
        for each in instructions
        if (start := branch_target(each)) is not None and start < each.address
    ]
    kinds = [classify(each.opcode, each.operands) for each in instructions]
    inside = (
        kind
        for each, kind in zip(instructions, kinds, strict=True)
        if any(start <= each.address <= end for start, end in ranges)
    )
    local = sum(each.width for each in instructions if each.opcode.startswith(("LDL", "STL")))
    return Mix(_counts(kinds), len(ranges), _counts(inside), local)


def loops(instructions: Sequence[Instruction]) -> list[tuple[int, int]]:
    """The addresses of the first and the last instruction of each loop, in order."""
    ends: dict[int, int] = {}
    for each in instructions:
        start = branch_target(each)
        if start is not None and start < each.address:
            ends[start] = each.address
    return sorted(ends.items())


def disassemble(codes: Sequence[bytes], arch: str) -> list[list[Instruction] | None]:
    """The instructions of each piece of machine code; None for a piece that cannot be disassembled.

    The disassembler takes half a second to start and milliseconds per kernel, so pass many pieces at once.
    """
    unique = list(dict.fromkeys(codes))
    known = {code: _CACHE[arch, code] for code in unique if (arch, code) in _CACHE}
    missing = [code for code in unique if code not in known]
    groups = _groups(missing)
    with ThreadPoolExecutor(max(1, len(groups))) as pool:
        found = [each for group in pool.map(lambda group: _run(group, arch), groups) for each in group]
    for code, instructions in zip(missing, found, strict=True):
        if len(_CACHE) >= _CACHE_SIZE:
            _CACHE.clear()
        known[code] = _CACHE[arch, code] = instructions
    return [known[code] for code in codes]


_CACHE: dict[tuple[str, bytes], list[Instruction] | None] = {}
_CACHE_SIZE = 256
_MEMORY, _SECONDS = 4 << 30, 600.0
_WORTH_A_START = 256 << 10
"""Bytes of machine code that take about as long to disassemble as the disassembler takes to start."""


def _groups(codes: Sequence[bytes]) -> list[list[bytes]]:
    """Split the codes, in order, into groups for parallel runs of the disassembler, if that is worth its start."""
    most = max(_WORTH_A_START, -(-sum(map(len, codes)) // machine.cores()))
    groups: list[list[bytes]] = []
    for code in codes:
        if not groups or sum(map(len, groups[-1])) >= most:
            groups.append([])
        groups[-1].append(code)
    return groups


def _run(codes: Sequence[bytes], arch: str) -> Sequence[list[Instruction] | None]:
    folder = scratch.make("presage-sass-")
    try:
        Path(folder, "code.bin").write_bytes(b"".join(codes))
        program = _disassembler()
        command = [str(program), "--binary", arch.upper().replace("_", "").replace("A", "a"), "code.bin"]
        limits = Rules(folder, (*program_paths(), str(program)), _MEMORY, may_spawn=True, reserves=True)
        done = processes.run(command, limits, _SECONDS, limits.file_bytes)
    except TimeoutError as error:
        raise toolkit.ToolkitError(f"nvdisasm took too long: {error}") from error
    except OSError as error:
        raise PresageError(f"cannot write to {folder}: {error.strerror}; set TMPDIR to a place with room") from error
    finally:
        scratch.remove(folder)
    if done.status == NOT_STARTED:
        raise toolkit.ToolkitError(f"nvdisasm does not work: {done.output.strip()[:500]}")
    if done.status and len(codes) > 1:  # one invalid piece makes the whole run fail
        return [each for code in codes for each in _run([code], arch)]
    if done.status:
        return [None]
    return _split(_LINE.findall(done.output), [len(code) for code in codes])


def _split(lines: Iterable[tuple[str, str, str]], sizes: Sequence[int]) -> list[list[Instruction]]:
    """Assign instructions to their kernels, with addresses relative to the kernel's start."""
    pieces: list[list[Instruction]] = [[] for _ in sizes]
    piece, start, end = 0, 0, sizes[0]
    for address, opcode, operands in lines:
        place = int(address, 16)
        while place >= end:
            start, piece = end, piece + 1
            end += sizes[piece]
        operands = _rebase(operands.strip(), start) if opcode.startswith(_BRANCHES) else operands.strip()
        pieces[piece].append(Instruction(place - start, opcode, operands))
    return pieces


_BRANCHES = ("BRA", "JMP", "BSSY", "CALL", "RET")
_TARGET = re.compile(r"\b0x([0-9a-f]+)\s*$")


def _rebase(operands: str, start: int) -> str:
    match = _TARGET.search(operands)
    if not match or int(match[1], 16) < start:
        return operands
    return f"{operands[: match.start()]}0x{int(match[1], 16) - start:x}"


def branch_target(instruction: Instruction) -> int | None:
    return target(instruction) if instruction.opcode.split(".")[0] in ("BRA", "JMP") else None


def target(instruction: Instruction) -> int | None:
    """The address at the end of an instruction's operands; None if there is none."""
    match = _TARGET.search(instruction.operands)
    return int(match[1], 16) if match else None


def is_trap(instruction: Instruction) -> bool:
    """Whether this is the branch to itself that ends every kernel."""
    return branch_target(instruction) == instruction.address


def _counts(kinds: Iterable[str]) -> dict[str, int]:
    counts = Counter(kinds)
    return {name: counts[name] for name in CLASSES if counts[name]}


@cache
def _disassembler() -> Path:
    return toolkit.program("nvdisasm")
