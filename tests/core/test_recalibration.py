"""Recalibrations on data whose right answer is known: a closed form, a brute-force optimum, or a promised coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from presage.core.recalibration import Isotonic, Online, Scaling, Temperature
from presage.core.scoring import ece, nll

pytestmark = pytest.mark.filterwarnings("error")

RNG = np.random.default_rng(0)
TRUE = RNG.random(4000)
CAME = (RNG.random(4000) < TRUE).astype(float)
TOO_SURE = Scaling(slope=3.0, offset=0.7)(TRUE)


# --- Temperature


@pytest.mark.parametrize(("p", "accuracy"), [(0.9, 0.6), (0.6, 0.9), (0.7, 0.7), (0.99, 0.75)])
def test_two_bins_have_a_closed_form(p: float, accuracy: float) -> None:
    truth = np.arange(100) >= 100 * accuracy
    fitted = Temperature.fit([[p, 1 - p]] * 100, truth.astype(int))
    expected = math.log(p / (1 - p)) / math.log(accuracy / (1 - accuracy))
    assert pytest.approx(expected, rel=1e-6) == fitted.T
    assert fitted.apply([[p, 1 - p]]) == pytest.approx(np.array([[accuracy, 1 - accuracy]]))


def test_temperature_finds_what_sharpened_the_forecasts() -> None:
    rng = np.random.default_rng(0)
    honest = rng.dirichlet(np.ones(8) * 2, size=4000)
    truth = (rng.random((4000, 1)) > np.cumsum(honest, axis=1)).sum(axis=1)
    sharp = honest**3 / (honest**3).sum(axis=1, keepdims=True)
    fitted = Temperature.fit(sharp, truth)
    assert pytest.approx(3, rel=0.1) == fitted.T
    assert nll(fitted.apply(sharp), truth) < nll(sharp, truth)
    assert nll(fitted.apply(sharp), truth) == pytest.approx(nll(honest, truth), abs=0.01)


def test_temperature_keeps_rows_normalised_ordered_and_missing() -> None:
    p = np.array([[0.5, 0.3, 0.2], [0.0, 0.0, 1.0], [math.nan] * 3])
    applied = Temperature(2.0).apply(p)
    assert applied[:2].sum(axis=1) == pytest.approx([1, 1])
    assert np.all(np.diff(applied[0]) < 0)
    assert np.all(np.isnan(applied[2]))
    assert Temperature(1.0).apply(p[:1]) == pytest.approx(p[:1])


def test_a_missing_forecast_does_not_move_the_temperature() -> None:
    p, truth = [[0.8, 0.2]] * 3, [0, 0, 1]
    assert Temperature.fit([*p, [math.nan, math.nan]], [*truth, 1]) == Temperature.fit(p, truth)


def test_a_temperature_has_bounds() -> None:
    assert pytest.approx(0.01) == Temperature.fit([[0.6, 0.4]], [0]).T
    assert pytest.approx(100) == Temperature.fit([[0.6, 0.4]], [1]).T


def test_uniform_forecasts_leave_the_temperature_at_1() -> None:
    assert Temperature.fit(np.full((5, 8), 1 / 8), [0, 1, 2, 3, 7]) == Temperature(1.0)


@pytest.mark.parametrize(
    ("p", "truth", "message"),
    [
        ([[math.nan] * 2], [0], "no forecasts"),
        ([[0.5, 0.5]], [0, 1], "do not fit"),
        ([[0.5, 0.5]], [-1], "true bin"),
        ([[0.5, 0.5]], [2], "true bin"),
    ],
)
def test_a_temperature_needs_forecasts(p, truth, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Temperature.fit(p, truth)


# --- Isotonic


@given(st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=1, max_size=30))
def test_pooling_is_the_max_min_formula(rows) -> None:
    c, y = (np.array(v, dtype=float) for v in zip(*rows, strict=True))
    fitted = Isotonic.fit(c, y)
    seen = sorted(set(c))
    for x, value in zip(seen, fitted.accuracy, strict=True):
        pooled = [[y[(c >= a) & (c <= b)].mean() for b in seen if b >= x] for a in seen if a <= x]
        assert value == pytest.approx(max(map(min, pooled)))
    assert np.all(np.diff(fitted.accuracy) >= 0)
    assert np.mean(fitted.apply(c)) == pytest.approx(np.mean(y))


def test_isotonic_mends_overconfidence() -> None:
    rng = np.random.default_rng(1)
    confidence = rng.random(20_000)
    correct = rng.random(20_000) < confidence**2
    fitted = Isotonic.fit(confidence[:10_000], correct[:10_000])
    assert ece(confidence[10_000:], correct[10_000:]) > 0.1
    assert ece(fitted.apply(confidence[10_000:]), correct[10_000:]) < 0.03


def test_isotonic_is_linear_between_constant_beyond_and_keeps_the_missing() -> None:
    fitted = Isotonic.fit([0.2, 0.4, math.nan], [0, 1, 1])
    assert fitted.apply([0.0, 0.3, 0.9]) == pytest.approx([0, 0.5, 1])
    assert np.isnan(fitted.apply([math.nan]))[0]


def test_isotonic_needs_forecasts() -> None:
    with pytest.raises(ValueError, match="no forecasts"):
        Isotonic.fit([math.nan], [1])
    with pytest.raises(ValueError, match="one length"):
        Isotonic.fit([0.5], [1, 0])
    with pytest.raises(ValueError, match="correct is missing"):
        Isotonic.fit([0.5], [math.nan])


# --- Scaling


def test_what_was_too_sure_is_calibrated_again() -> None:
    fitted = Scaling.fit(TOO_SURE, CAME)
    assert ece(TOO_SURE, CAME) > 0.1
    assert ece(np.clip(fitted(TOO_SURE), 0, 1), CAME) < 0.03


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=30))
def test_a_map_never_changes_the_order_and_stays_a_probability(pairs: list[tuple[float, bool]]) -> None:
    said, came = [p for p, _ in pairs], [float(y) for _, y in pairs]
    grid = np.linspace(0, 1, 21)
    mapped = Scaling.fit(said, came)(grid)
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


@pytest.mark.parametrize("wrong", [([0.5], [2]), ([1.5], [1]), ([0.5, 0.5], [1]), ([], [])])
def test_what_is_no_probability_is_refused(wrong: tuple[list[float], list[float]]) -> None:
    with pytest.raises(ValueError, match="outcomes"):
        Scaling.fit(*wrong)
