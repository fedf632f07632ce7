"""Makes problems from elsewhere smaller: a KernelBench file with the numbers halved that it assigns at its top, or a
one-file problem with the numbers of its cases halved, or reduced where a kernel states the problem. GPU MODE's tasks
have small tests of their own."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from presage.problems.base import Case
from presage.problems.external import KERNELBENCH, ONE_FILE, ExternalProblem
from presage.problems.kernel_file import KernelProblem

CAPS = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
"""Numbers above the cap are halved. Large numbers shrink first: as many as possible stay no smaller than a kernel's
tile."""


_WINDOW = 16
"""Odd numbers up to this stay as they are, since many are sizes of windows."""


def smaller(problem: ExternalProblem) -> Iterator[ExternalProblem]:
    """Yield the problem at smaller sizes, the smallest first and the original one last, each with one case. The
    reference may fail at some of these sizes; nothing is run here."""
    found: dict[Any, ExternalProblem] = {}
    for cap in (*CAPS, None):
        made = _capped(problem, cap)
        found.setdefault((made.timed["gpu"][0].name, *made.files.values()), made)
    yield from found.values()


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


def _capped(problem: ExternalProblem, cap: int | None) -> ExternalProblem:
    made = copy.copy(problem)
    made.__dict__.pop("cases", None)
    case = problem.timed["gpu"][0]
    if problem.convention == ONE_FILE:
        case = Case({name: halved(value, cap) for name, value in case.dims.items()})
    elif problem.convention == KERNELBENCH:
        made.files = {name: _rewritten(text, cap) for name, text in problem.files.items()}
    made.checks, made.timed = (case,), {"cpu": (case,), "gpu": (case,)}
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


def _rewritten(text: str, cap: int | None) -> str:
    """The file with smaller numbers in the assignments at its top: `n = 4096`, or `height, width = 224, 224`."""
    lines = text.encode().splitlines(keepends=True)
    for number in sorted(_numbers(ast.parse(text)), key=lambda each: (each.lineno, each.col_offset), reverse=True):
        line, made = lines[number.lineno - 1], str(halved(number.value, cap)).encode()
        lines[number.lineno - 1] = line[: number.col_offset] + made + line[number.end_col_offset :]
    return b"".join(lines).decode()


def _numbers(tree: ast.Module) -> Iterator[ast.Constant]:
    for node in tree.body:
        if isinstance(node, ast.Assign):
            values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            yield from (each for each in values if isinstance(each, ast.Constant) and type(each.value) is int)
