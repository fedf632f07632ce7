"""Reads PTX, the intermediate text before machine code: an entry's parameters, and its instructions in basic blocks."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_ENTRY = re.compile(r"\.entry\s+([\w$.]+)\s*\(([^(){};]*+)\)")
_PARAMETER = re.compile(r"\.param\s+(?:\.align\s+\d+\s+)?\.(\w+)")
_PARAMETER_NAME = re.compile(r"([\w$]+)(?:\[\d+\])?")
_SHARED = re.compile(r"\.shared\s+(?:\.align\s+(\d{1,9})\s+)?\.(\w+)\s+([\w$.]+)(?:\[(\d{0,12})\])?")
_STATEMENT = re.compile(
    r"""\s*+(?:
        (?P<label>[\w$.]+):(?!:)
      | (?:(?P<guard>@!?[%\w$.]+)\s*+)?(?P<opcode>[a-z][\w.:]*)(?P<operands>[^;{}]*+(?:\{[^;{}]*+\}[^;{}]*+)*+);
      | [{}]
      | \.[^;{}\n]*[;\n]?
    )""",
    re.VERBOSE,
)
_LABEL = re.compile(r"^[ \t]*([\w$.]+):(?!:)", re.MULTILINE)
_NAME = re.compile(r"[\w$.%]+")
_SCOPE = re.compile(r"\{(?:[^{}]++|\{[^{}]*+\})*+\}")
"""A block in braces, as inline assembly has, with operands in braces."""
_TARGET = re.compile(r"\bbra[.\w]*\s+([\w$.]+)")
_OPERAND = re.compile(r"\[[^\[\]]*+\]|\{[^{}]*+\}|\([^()]*+\)|[^,\s|]+")
_LONGEST = 64 << 20
_ENDS = ("bra", "ret", "exit", "brx", "trap")
_SIZES = {"b8": 1, "u8": 1, "s8": 1, "b16": 2, "u16": 2, "s16": 2, "f16": 2, "b64": 8, "u64": 8, "s64": 8, "f64": 8}


@dataclass(frozen=True)
class Instruction:
    """`@%p1 add.s32 %r1, %r2, 4;`: guard, opcode, operands. A vector or an address is one operand."""

    guard: str
    """`%p1`, `!%p1`, or nothing."""
    opcode: str
    operands: tuple[str, ...]

    @cached_property
    def root(self) -> str:
        return self.opcode.partition(".")[0]

    @cached_property
    def parts(self) -> list[str]:
        return self.opcode.split(".")[1:]


@dataclass(frozen=True)
class Block:
    """Instructions that run one after the other; only the last can branch."""

    instructions: tuple[Instruction, ...]


@dataclass(frozen=True, eq=False)
class Entry:
    """One kernel."""

    name: str
    parameters: dict[str, str]
    """The type of each parameter (`u64` for a pointer), in order."""
    blocks: tuple[Block, ...]
    labels: dict[str, int]
    """The index of the block that each label starts."""
    shared: dict[str, int]
    """The address of each variable in shared memory."""

    @cached_property
    def loops(self) -> tuple[tuple[int, int], ...]:
        """The first and the last block of each loop, in order."""
        ends: dict[int, int] = {}
        for number, block in enumerate(self.blocks):
            last = block.instructions[-1]
            start = (
                self.labels.get(last.operands[0], number + 1) if last.root == "bra" and last.operands else number + 1
            )
            if start <= number:
                ends[start] = number
        return tuple(sorted(ends.items()))


def depths(loops: Sequence[tuple[int, int]]) -> list[int]:
    """For each loop: how many other loops enclose it."""
    return [sum(start <= first and last <= end for start, end in loops) - 1 for first, last in loops]


@lru_cache(maxsize=8)
def parse(text: str, name: str) -> Entry | None:
    """The entry of this name, or None if there is no complete one. Cached, since a kernel is parsed once per case."""
    if len(text) > _LONGEST:
        return None
    text = _COMMENT.sub("", text)
    found = next((each for each in _ENTRY.finditer(text) if each[1] == name), None)
    if found is None:
        return None
    body = _body(text, found.end())
    if body is None:
        return None
    blocks, labels = _blocks(_with_own_labels(body))
    return Entry(name, dict(_parameters(found[2])), tuple(blocks), labels, _shared(text))


def _parameters(text: str) -> Iterator[tuple[str, str]]:
    """Yield each parameter's name and type: `.param .u64 .ptr .global .align 16 name` or
    `.param .align 8 .b8 name[16]`."""
    for declared in text.split(","):
        kind = _PARAMETER.match(declared.strip())
        if kind and (name := _PARAMETER_NAME.fullmatch(declared.split()[-1])):
            yield name[1], kind[1]


def _body(text: str, start: int) -> str | None:
    """The text between the entry's braces; None if they do not close."""
    depth, opened = 0, start
    for brace in re.compile(r"[{}]").finditer(text, start):
        if depth == 0:
            opened = brace.end()
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return text[opened : brace.start()]
    return None


def _with_own_labels(body: str) -> str:
    """The body with a name of its own for each label. The same inline assembly in several places, such as Triton's
    loop that waits for a copy, has the same label in each, which is only known between its braces."""
    counts = Counter(_LABEL.findall(body))
    again = {label for label, count in counts.items() if count > 1}
    if not again:
        return body
    numbers = itertools.count()

    def renamed(scope: re.Match[str]) -> str:
        inside = again.intersection(_LABEL.findall(scope[0]))
        if not inside:
            return scope[0]
        number = next(numbers)
        return _NAME.sub(lambda name: f"{name[0]}${number}" if name[0] in inside else name[0], scope[0])

    return _SCOPE.sub(renamed, body)


def _shared(text: str) -> dict[str, int]:
    """Addresses of variables in order of declaration. Variables without a size come after all others."""
    places: dict[str, int] = {}
    open_ended: dict[str, None] = {}
    top = 0
    for found in _SHARED.finditer(text):
        align, kind, name, count = found.groups()
        if name in places or name in open_ended:
            continue
        if count == "":
            open_ended[name] = None
            continue
        step = max(int(align or 1), 1)
        top = -(-top // step) * step
        places[name] = top
        top += _SIZES.get(kind, 4) * int(count or 1)
    return places | dict.fromkeys(open_ended, -(-top // 1024) * 1024)


def _blocks(body: str) -> tuple[list[Block], dict[str, int]]:
    blocks: list[Block] = []
    labels: dict[str, int] = {}
    current: list[Instruction] = []

    def end() -> None:
        if current:
            blocks.append(Block(tuple(current)))
            current.clear()

    targets = set(_TARGET.findall(body))
    for label, instruction in _statements(body):
        if label in targets:
            end()
            labels[label] = len(blocks)
        elif instruction:
            current.append(instruction)
            if instruction.root in _ENDS:
                end()
    end()
    return blocks, labels


def _statements(body: str) -> Iterator[tuple[str, Instruction | None]]:
    position = 0
    while match := _STATEMENT.match(body, position):
        position = match.end()
        if match["label"]:
            yield match["label"], None
        elif match["opcode"]:
            operands = tuple(" ".join(each.split()) for each in _OPERAND.findall(match["operands"]))
            yield "", Instruction((match["guard"] or "").removeprefix("@"), match["opcode"], operands)
