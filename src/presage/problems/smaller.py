"""Makes problems from elsewhere smaller: a KernelBench file with the numbers halved that it assigns at its top, or else
those in the functions that make its inputs; a one-file problem with the numbers of its cases halved, or, without any,
those of the file. Where a kernel states the problem, its sizes are reduced. GPU MODE's tasks have small tests of their
own."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeGuard

from presage.problems.base import Case
from presage.problems.external import KERNELBENCH, ONE_FILE, ExternalProblem
from presage.problems.kernel_file import KernelProblem

CAPS = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
"""Numbers above the cap are halved. Large numbers shrink first: as many as possible stay no smaller than a kernel's
tile."""

_MOST_CASES = 3
_NARROW = 16
_MAKES_INPUTS = ("get_inputs", "get_init_inputs", "inputs")
_WINDOW = 16
"""Odd numbers up to this stay as they are, since many are sizes of windows."""


def smaller(problem: ExternalProblem) -> Iterator[ExternalProblem]:
    """Yield the problem at smaller sizes, the smallest first and the original one last, each with at most _MOST_CASES
    cases. The reference may fail at some of these sizes; nothing is run here."""
    found: dict[Any, ExternalProblem] = {}
    for cap in (*CAPS, None):
        made = _capped(problem, cap)
        found.setdefault(_identity(made), made)
    yield from found.values()


def narrow(problem: ExternalProblem) -> Iterator[ExternalProblem]:
    """Yield the problem with all numbers small but one (of one-file problems: but one of each case), which is as
    written: first that where the largest is. A kernel may need rows of some length, or so many of them, but seldom
    both."""
    largest: dict[str | int, int] = {}
    for name, value in _written(problem):
        if halved(value, _NARROW) != value:
            largest[name] = max(value, largest.get(name, 0))
    found: dict[Any, ExternalProblem] = {}
    for kept in sorted(largest, key=lambda name: -largest[name]):
        made = _capped(problem, _NARROW, kept)
        found.setdefault(_identity(made), made)
    yield from found.values() if len(largest) > 1 else ()


def _written(problem: ExternalProblem) -> Iterator[tuple[str | int, int]]:
    """The numbers that `_capped` may make smaller: of a case with their names, of a file with themselves as names."""
    if _is_rewritten(problem):
        for text in problem.files.values():
            yield from ((each.value, each.value) for each in _numbers(ast.parse(text)))  # type: ignore[misc]
    else:
        for case in problem.timed["gpu"]:
            yield from ((name, value) for name, value in case.dims.items() if type(value) is int)


def _identity(problem: ExternalProblem) -> tuple[str, ...]:
    return (*(case.name for case in problem.checks), *problem.files.values())


def smaller_kernel_problems(problem: KernelProblem) -> Iterator[KernelProblem]:
    """Yield the problem with its first case at smaller sizes, the largest first."""
    case = problem.timed["gpu"][0]
    sizes = [{name: reduced(value, cap) for name, value in case.dims.items()} for cap in reversed(CAPS)]
    for dims in {tuple(each.items()): each for each in sizes if each != case.dims}.values():
        made, cases = copy.copy(problem), (replace(case, dims=dims),)
        made.checks, made.timed = cases, {"cpu": cases, "gpu": cases}
        yield made


def reduced(value: int, cap: int) -> int:
    """Reduce a size to less than twice the cap, a power of two. What is left over by tiles of up to that size stays.

    >>> reduced(1000, 64), reduced(16777217, 64), reduced(100, 64)
    (104, 65, 100)
    """
    return cap + value % cap if value >= 2 * cap else value


def _capped(problem: ExternalProblem, cap: int | None, kept: str | int | None = None) -> ExternalProblem:
    """The problem with numbers above the cap halved, except one: that of this name, or in a file that of this value."""
    made = copy.copy(problem)
    made.__dict__.pop("cases", None)
    some = problem.timed["gpu"][:1]
    if _is_rewritten(problem):
        made.files = {name: _rewritten(text, cap, kept) for name, text in problem.files.items()}
    elif problem.convention == ONE_FILE:
        every = [
            Case({name: value if name == kept else halved(value, cap) for name, value in case.dims.items()})
            for case in problem.timed["gpu"]
        ]
        some = tuple({case.name: case for case in every}.values())[:_MOST_CASES]
    made.checks, made.timed = some, {"cpu": some, "gpu": some}
    return made


def halved(value: Any, cap: int | None) -> Any:
    """Halve an integer while it is above the cap. An odd one stays odd, so that tiles leave a rest. Any other value is
    returned unchanged.

    >>> halved(4096, 256), halved(4095, 256), halved(11, 8)
    (256, 255, 11)
    """
    if type(value) is int and cap is not None:
        while value > cap and (value % 2 == 0 or value > _WINDOW):
            value = value // 2 | value % 2
    return value


def _rewritten(text: str, cap: int | None, kept: str | int | None = None) -> str:
    """The file with smaller numbers."""
    lines = text.encode().splitlines(keepends=True)
    for number in sorted(_numbers(ast.parse(text)), key=lambda each: (each.lineno, each.col_offset), reverse=True):
        value = number.value if number.value == kept else halved(number.value, cap)
        line, made = lines[number.lineno - 1], str(value).encode()
        lines[number.lineno - 1] = line[: number.col_offset] + made + line[number.end_col_offset :]
    return b"".join(lines).decode()


def _is_rewritten(problem: ExternalProblem) -> bool:
    """Whether the problem's sizes are numbers in its file, and not those of its cases."""
    has_sizes = any(type(value) is int for case in problem.timed["gpu"] for value in case.dims.values())
    return problem.convention == KERNELBENCH or (problem.convention == ONE_FILE and not has_sizes)


def _numbers(tree: ast.Module) -> Sequence[ast.Constant]:
    """The numbers assigned at the file's top (`n = 4096`, or `height, width = 224, 224`), or else those in the
    functions that make the inputs (`return [torch.rand(4096)]`)."""
    assigned = [node.value for node in tree.body if isinstance(node, ast.Assign)]
    values = [each for value in assigned for each in (value.elts if isinstance(value, ast.Tuple) else [value])]
    if found := list(filter(_is_number, values)):
        return found
    makers = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in _MAKES_INPUTS]
    return [each for maker in makers for each in ast.walk(maker) if _is_number(each)]


def _is_number(node: ast.AST) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and type(node.value) is int
