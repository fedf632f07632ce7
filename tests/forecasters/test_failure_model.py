"""What failed in a search says what else will."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from presage import Kernel
from presage.forecasters import failure_model
from presage.kernels.header import Header


def kernel(**values: int | str) -> Kernel:
    text = " ".join(f"{name}={value}" for name, value in values.items())
    return Kernel(f"// {text}", "cuda", Header(), f"family.cu@{text}", dict(values))


def test_where_nothing_was_tried_the_forecast_stands() -> None:
    assert failure_model.learn([], [], np.zeros(0), [kernel(A=1)], np.array([0.3])).tolist() == [0.3]


def test_a_value_that_always_fails_is_found_among_those_that_do_not_matter() -> None:
    tried = [kernel(PRECISION=p, BLOCK=b) for p in ("tf32", "ieee") for b in (16, 32, 64)]
    failed = [each.values["PRECISION"] == "tf32" for each in tried]
    asked = [kernel(PRECISION="tf32", BLOCK=128), kernel(PRECISION="ieee", BLOCK=128)]
    bad, good = failure_model.learn(tried, failed, np.full(6, 0.1), asked, np.full(2, 0.1))
    assert bad > 0.5
    assert good < 0.2


def test_what_was_expected_moves_little() -> None:
    tried = [kernel(A=a) for a in range(8)]
    failed = [True, False] * 4
    expected = np.where(failed, 0.99, 0.01)
    asked = [kernel(A=9), kernel(A=10)]
    assert failure_model.learn(tried, failed, expected, asked, np.array([0.2, 0.8])) == pytest.approx(
        [0.2, 0.8], abs=0.02
    )


outcomes = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.booleans(), st.floats(0, 1)), min_size=1, max_size=30
)


@given(outcomes, st.floats(0, 1))
def test_chances_are_chances_in_whatever_order_kernels_were_tried(
    told: list[tuple[int, int, bool, float]], forecast: float
) -> None:
    def learn(rows: list[tuple[int, int, bool, float]]) -> np.ndarray:
        tried = [kernel(A=a, B=b) for a, b, _, _ in rows]
        failed, expected = [row[2] for row in rows], np.array([row[3] for row in rows])
        asked = [kernel(A=a, B=b) for a in range(4) for b in range(4)]
        return failure_model.learn(tried, failed, expected, asked, np.full(len(asked), forecast))

    found = learn(told)
    assert np.all((found > 0) & (found < 1))
    assert learn(sorted(told)) == pytest.approx(found, abs=1e-3)


@given(st.integers(1, 12), st.floats(0.05, 0.5))
def test_the_more_of_a_value_failed_the_likelier_the_next(count: int, prior: float) -> None:
    def chance(number: int) -> float:
        tried = [kernel(A=1)] * number
        found = failure_model.learn(tried, [True] * number, np.full(number, prior), [kernel(A=1)], np.array([prior]))
        return float(found[0])

    assert prior < chance(count) < chance(count + 1)
