"""Recalibration: probabilities that were wrong become right, and order is kept."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from presage.core.recalibration import Isotonic, Online, Scaling, at_base_rate
from presage.core.scoring import ece

RNG = np.random.default_rng(0)
TRUE = RNG.random(4000)
CAME = (RNG.random(4000) < TRUE).astype(float)
TOO_SURE = Scaling(slope=3.0, offset=0.7)(TRUE)


@pytest.mark.parametrize("kind", [Scaling, Isotonic])
def test_what_was_too_sure_is_calibrated_again(kind: type[Scaling] | type[Isotonic]) -> None:
    fitted = kind.fit(TOO_SURE, CAME)
    assert ece(TOO_SURE, CAME) > 0.1
    assert ece(np.clip(fitted(TOO_SURE), 0, 1), CAME) < 0.03


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=30))
def test_a_map_never_changes_the_order_and_stays_a_probability(pairs: list[tuple[float, bool]]) -> None:
    said, came = [p for p, _ in pairs], [float(y) for _, y in pairs]
    grid = np.linspace(0, 1, 21)
    for mapped in (Scaling.fit(said, came)(grid), Isotonic.fit(said, came)(grid)):
        assert np.all(np.diff(mapped) >= -1e-12)
        assert np.all((mapped >= 0) & (mapped <= 1))


def test_few_outcomes_change_little_and_many_much() -> None:
    few, many = Online(), Online()
    for _ in range(2):
        few.observe(0.95, False)
    for _ in range(200):
        many.observe(0.95, False)
    assert few(0.95) > 0.8
    assert many(0.95) < 0.5
    assert Online()(0.7) == pytest.approx(0.7)


def test_another_base_rate_moves_the_odds_and_moves_back() -> None:
    there = at_base_rate([0.2, 0.5, 0.9], known=0.5, wanted=0.9)
    assert at_base_rate(there, known=0.9, wanted=0.5) == pytest.approx([0.2, 0.5, 0.9])


@pytest.mark.parametrize("wrong", [([0.5], [2]), ([1.5], [1]), ([0.5, 0.5], [1]), ([], [])])
def test_what_is_no_probability_is_refused(wrong: tuple[list[float], list[float]]) -> None:
    with pytest.raises(ValueError, match=r"outcomes|base rate"):
        Scaling.fit(*wrong)
