"""The integer expressions of headers: what they compute, and everything they refuse."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from presage.kernels.expression import ExpressionError, evaluate, names, parse

VALUES = {"n": 1000, "B": 256, "zero": 0, "kind": "half"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7),
        ("n", 1000),
        ("n + B - 1", 1255),
        ("2 * n // B", 7),
        ("n % B", 232),
        ("-n", -1000),
        ("cdiv(n, B)", 4),
        ("min(n, B, 3)", 3),
        ("max(n, B)", 1000),
        ("(n - 1) * (B + 1)", 999 * 257),
        ("1 if n > B else 2", 1),
        ("1 if n <= B else n // zero if zero else 2", 2),
        ("n == 1000 and B != 0", True),
        ("n < 10 or not zero", True),
        ("zero == 0 or n // zero > 1", True),
        ("0 < B < n", True),
        ("0 < n < B", False),
        ("kind == 'half'", True),
        ("  n  ", 1000),
    ],
)
def test_values(text: str, value: int) -> None:
    assert evaluate(text, VALUES) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "n +",
        "n; B",
        "n = 1",
        "n / 2",
        "n ** 9",
        "n << 2",
        "n @ B",
        "1.5",
        "None",
        "b'x'",
        "[n]",
        "n[0]",
        "n.real",
        "lambda: n",
        "(x := 3)",
        "f(n)",
        "__import__('os')",
        "min(n, key=B)",
        "min(*n)",
        "[x for x in n]",
        "f'{n}'",
        "n is B",
        "n in B",
        "~n",
        "+n",
        "\0",
        "(" * 300,
        "n" * 501,
    ],
)
def test_everything_else_is_refused(text: str) -> None:
    with pytest.raises(ExpressionError, match=r"allowed|write at most"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("missing", "'missing' has no value here; known names: B, kind, n, zero"),
        ("n // zero", "divides by zero"),
        ("n % zero", "divides by zero"),
        ("kind + 1", "computes with text"),
        ("kind * 100000000000", "computes with text"),
        ("kind < 1", "computes with text"),
        ("cdiv(n)", "wrong number of values"),
        ("min()", "wrong number of values"),
    ],
)
def test_what_cannot_be_worked_out_is_explained(text: str, complaint: str) -> None:
    with pytest.raises(ExpressionError, match=complaint):
        evaluate(text, VALUES)


def test_names_leave_out_the_functions() -> None:
    assert names("cdiv(n, B) if min(k, 1) else rows") == {"n", "B", "k", "rows"}


@given(st.integers(0, 10**9), st.integers(1, 10**6))
def test_cdiv_rounds_up(a: int, b: int) -> None:
    blocks = evaluate("cdiv(a, b)", {"a": a, "b": b})
    assert (blocks - 1) * b < a <= blocks * b


@given(st.text(max_size=60))
def test_any_text_has_a_value_or_is_refused(text: str) -> None:
    with contextlib.suppress(ExpressionError):
        evaluate(text, VALUES)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("n * " * 40 + "n", "makes a number beyond 2"),
        ("cdiv(x, 1) * 10", "makes a number beyond 2"),
        ("9" * 30, "is not allowed"),
        ("-" * 300 + "1", "parts within each other; write at most"),
    ],
)
def test_neither_numbers_nor_depths_grow_without_limit(text: str, complaint: str) -> None:
    with pytest.raises(ExpressionError, match=complaint):
        evaluate(text, {"n": 1000, "x": 1.7e308})
