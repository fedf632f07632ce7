"""Integer expressions in headers and array shapes: arithmetic on named integers, and nothing else."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {ast.USub: operator.neg, ast.Not: operator.not_}
_FUNCTIONS: dict[str, Callable[..., Any]] = {"min": min, "max": max, "cdiv": lambda a, b: -(-a // b)}

MAX_LENGTH = 500
MAX_DEPTH = 100
"""Nesting depth of an expression. `_value` recurses once per level."""
MAX_VALUE = 1 << 64
GRAMMAR = "integers, names, + - * // %, comparisons, and/or/not, a if c else b, min(), max(), cdiv()"


class ExpressionError(ValueError):
    """The text is not an expression of the grammar, or it uses a name that has no value."""


@lru_cache(maxsize=4096)
def parse(text: str) -> ast.expr:
    """Parse an expression and check it against the grammar. Raises ExpressionError if something is not allowed."""
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"an expression of {len(text)} characters; write at most {MAX_LENGTH}")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ExpressionError(f"'{text}' is not an expression; allowed are {GRAMMAR}") from error
    _check(tree, text)
    _check_depth(tree)
    return tree


def names(text: str) -> set[str]:
    """The names that an expression needs values for."""
    return {node.id for node in ast.walk(parse(text)) if isinstance(node, ast.Name) and node.id not in _FUNCTIONS}


def evaluate(text: str, values: Mapping[str, Any]) -> Any:
    """The value of an expression. Raises ExpressionError.

    >>> evaluate("cdiv(n, BLOCK) if n > 1 else 1", {"n": 1000, "BLOCK": 256})
    4
    """
    try:
        return _value(parse(text), values)
    except ZeroDivisionError as error:
        raise ExpressionError(f"'{text}' divides by zero") from error
    except OverflowError as error:
        raise ExpressionError(f"'{text}' makes a number beyond 2**64") from error
    except TypeError as error:
        raise ExpressionError(
            f"'{text}' computes with text, or calls a function with the wrong number of values"
        ) from error


def _check(node: ast.expr, text: str) -> None:
    for child in ast.walk(node):
        allowed = (
            isinstance(child, ast.Name | ast.IfExp | ast.BoolOp | ast.boolop | ast.expr_context)
            or (isinstance(child, ast.Constant) and isinstance(child.value, int) and child.value <= MAX_VALUE)
            or (isinstance(child, ast.Constant) and isinstance(child.value, str))
            or (isinstance(child, ast.BinOp) and type(child.op) in _BINARY)
            or (isinstance(child, ast.UnaryOp) and type(child.op) in _UNARY)
            or (isinstance(child, ast.Compare) and all(type(op) in _COMPARE for op in child.ops))
            or (isinstance(child, ast.Call) and isinstance(child.func, ast.Name) and child.func.id in _FUNCTIONS)
            or isinstance(child, ast.operator | ast.unaryop | ast.cmpop)
        )
        if not allowed or (isinstance(child, ast.Call) and child.keywords):
            raise ExpressionError(f"'{text}' uses something that is not allowed; allowed are {GRAMMAR}")


def _check_depth(tree: ast.expr) -> None:
    layer, depth = [tree], 0
    while layer:
        layer = [child for node in layer for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
        depth += 1
    if depth > MAX_DEPTH:
        raise ExpressionError(f"an expression of {depth} parts within each other; write at most {MAX_DEPTH}")


def _value(node: ast.expr, values: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant():
            return node.value
        case ast.Name():
            if node.id not in values:
                known = ", ".join(sorted(values)) or "none"
                raise ExpressionError(f"'{node.id}' has no value here; known names: {known}")
            return values[node.id]
        case ast.BinOp():
            left, right = _value(node.left, values), _value(node.right, values)
            if isinstance(left, str) or isinstance(right, str):
                raise TypeError("text has no arithmetic: 'a' * 10000000000 would take all memory")
            return _bounded(_BINARY[type(node.op)](left, right))
        case ast.UnaryOp():
            return _UNARY[type(node.op)](_value(node.operand, values))
        case ast.BoolOp():
            results = (_value(part, values) for part in node.values)
            return all(results) if isinstance(node.op, ast.And) else any(results)
        case ast.Compare():
            left = _value(node.left, values)
            for op, part in zip(node.ops, node.comparators, strict=True):
                right = _value(part, values)
                if not _COMPARE[type(op)](left, right):
                    return False
                left = right
            return True
        case ast.IfExp():
            return _value(node.body if _value(node.test, values) else node.orelse, values)
        case ast.Call(func=ast.Name(id=name)):
            return _bounded(_FUNCTIONS[name](*(_value(argument, values) for argument in node.args)))
    raise ExpressionError("unreachable: parse() admits no other node")


def _bounded(value: Any) -> Any:
    if not isinstance(value, str) and not -MAX_VALUE <= value <= MAX_VALUE:  # NaN is refused, too
        raise OverflowError
    return value
