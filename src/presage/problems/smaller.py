"""A problem from elsewhere at smaller sizes: a KernelBench file with the numbers halved that it gives names at its top,
or the cases of a one-file problem with theirs halved. GPU MODE's tasks have small tests of their own."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from typing import Any

from presage.problems.base import Case
from presage.problems.external import KERNELBENCH, ONE_FILE, ExternalProblem

SIZES = ((10, 4), (8, 8), (8, 16), (6, 16), (5, 16), (4, 16), (3, 16), (2, 16), (1, 16))
"""How often numbers are halved at most, and what they stay above; the smallest first."""


def smaller(problem: ExternalProblem) -> Iterator[ExternalProblem]:
    """The problem at smaller sizes, the smallest first, and as it is written in the end: each with one case. Nobody
    knows yet whether its reference works at all of them."""
    found: dict[Any, ExternalProblem] = {}
    for halvings, least in (*SIZES, (0, 1)):
        made = _halved(problem, halvings, least)
        found.setdefault((made.timed["gpu"][0].name, *made.files.values()), made)
    yield from found.values()


def _halved(problem: ExternalProblem, halvings: int, least: int) -> ExternalProblem:
    made = copy.copy(problem)
    made.__dict__.pop("cases", None)
    case = problem.timed["gpu"][0]
    if problem.convention == ONE_FILE:
        case = Case({name: halve(value, halvings, least) for name, value in case.dims.items()})
    elif problem.convention == KERNELBENCH:
        made.files = {name: _rewritten(text, halvings, least) for name, text in problem.files.items()}
    made.checks, made.timed = (case,), {"cpu": (case,), "gpu": (case,)}
    return made


def halve(value: Any, halvings: int, least: int) -> Any:
    """A whole number, halved while that leaves one and it stays large enough; anything else as it is."""
    if type(value) is not int:
        return value
    while halvings and value % 2 == 0 and value // 2 >= least:
        value, halvings = value // 2, halvings - 1
    return value


def _rewritten(text: str, halvings: int, least: int) -> str:
    """The same file with other numbers in the assignments at its top: `n = 4096`, or `height, width = 224, 224`."""
    lines = text.encode().splitlines(keepends=True)
    for number in sorted(_numbers(ast.parse(text)), key=lambda each: (each.lineno, each.col_offset), reverse=True):
        line, made = lines[number.lineno - 1], str(halve(number.value, halvings, least)).encode()
        lines[number.lineno - 1] = line[: number.col_offset] + made + line[number.end_col_offset :]
    return b"".join(lines).decode()


def _numbers(tree: ast.Module) -> Iterator[ast.Constant]:
    for node in tree.body:
        if isinstance(node, ast.Assign):
            values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            yield from (each for each in values if isinstance(each, ast.Constant) and type(each.value) is int)
