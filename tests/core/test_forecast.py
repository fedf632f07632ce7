"""Forecasts: what is refused, known values, and what every distribution obeys."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from presage import Forecast
from presage.core.scale import EDGES

weights = st.lists(st.integers(0, 50), min_size=8, max_size=8).filter(any)
chances = st.floats(0.0, 1.0)


@st.composite
def forecasts(draw: st.DrawFn) -> Forecast:
    p_fail = draw(chances)
    if draw(st.booleans()):
        return Forecast.from_bins(draw(weights), p_fail)
    levels = sorted(draw(st.sets(st.integers(1, 99), min_size=2, max_size=9)))
    values = draw(st.lists(st.floats(-6, 6), min_size=len(levels), max_size=len(levels)))
    return Forecast.from_quantiles([level / 100 for level in levels], values, p_fail)


@given(weights, chances)
def test_bins_make_the_round_trip(w: list[int], p_fail: float) -> None:
    forecast = Forecast.from_bins(w, p_fail)
    assert forecast.bin_probabilities() == pytest.approx(np.array(w) / sum(w), abs=1e-12)
    assert forecast.raw_sum == sum(w)
    assert forecast.p_fail == p_fail


@given(st.lists(st.floats(0, 1e300), min_size=8, max_size=8).filter(any))
def test_any_weights_are_renormalised(w: list[float]) -> None:
    assert Forecast.from_bins(w).bin_probabilities().sum() == pytest.approx(1)


@given(forecasts(), weights, chances)
def test_mass_is_moved_from_bin_to_bin(forecast: Forecast, w: list[int], p_fail: float) -> None:
    moved = forecast.with_bins(w, p_fail)
    assert moved.bin_probabilities() == pytest.approx(np.array(w) / sum(w), abs=1e-9)
    assert moved.p_fail == p_fail


@given(forecasts(), st.lists(st.floats(-6, 6), max_size=9))
def test_the_same_mass_in_each_bin_is_the_same_forecast(forecast: Forecast, points: list[float]) -> None:
    """But for bins that have hardly any."""
    same = forecast.with_bins(forecast.bin_probabilities(), forecast.p_fail)
    assert [same.cdf_at(x) for x in points] == pytest.approx([forecast.cdf_at(x) for x in points], abs=2e-3)


@given(forecasts(), st.lists(st.floats(-10, 10), min_size=2, max_size=20))
def test_the_cdf_rises(forecast: Forecast, points: list[float]) -> None:
    values = [forecast.cdf_at(x) for x in sorted(points)]
    assert values == sorted(values)
    assert 0 <= values[0] <= values[-1] <= 1


@given(forecasts(), st.lists(chances, min_size=2, max_size=20))
def test_quantiles_rise_inside_the_support(forecast: Forecast, levels: list[float]) -> None:
    values = [forecast.quantile(q) for q in sorted(levels)]
    assert np.all(np.diff(values) >= -1e-12)
    assert forecast.quantile(0) <= values[0] + 1e-12
    assert values[-1] <= forecast.quantile(1) + 1e-12


@given(forecasts(), chances)
def test_the_cdf_undoes_the_quantile(forecast: Forecast, q: float) -> None:
    assert forecast.cdf_at(forecast.quantile(q)) == pytest.approx(q, abs=1e-6)


@given(weights, st.floats(-3, 3))
def test_the_quantile_undoes_the_cdf_where_there_is_mass(w: list[int], x: float) -> None:
    forecast = Forecast.from_bins(w)
    q = forecast.cdf_at(x)
    assume(forecast.cdf_at(x - 1e-4) < q - 1e-9)
    # Below x the CDF has risen within 1e-4, so its smallest preimage of q is that near; exact where mass reaches x.
    assert forecast.quantile(q) == pytest.approx(x, abs=1e-4)
    if forecast.cdf_at(x + 1e-4) > q + 1e-9 and forecast.cdf_at(x - 1e-9) < q:
        assert forecast.quantile(q) == pytest.approx(x, abs=1e-8)


@given(forecasts(), st.lists(st.floats(0, 100), min_size=2, max_size=20))
def test_exceeding_more_is_less_likely(forecast: Forecast, speedups: list[float]) -> None:
    values = [forecast.exceeds(S) for S in sorted(speedups)]
    assert values == sorted(values, reverse=True)
    assert 0 <= values[-1] <= values[0] <= 1 - forecast.p_fail


@given(forecasts())
def test_exceeding_an_edge_is_the_mass_of_the_bins_above(forecast: Forecast) -> None:
    p = forecast.bin_probabilities()
    for k, edge in enumerate(EDGES):
        assert forecast.exceeds(edge) == pytest.approx((1 - forecast.p_fail) * p[k + 1 :].sum(), abs=1e-8)


@given(forecasts())
def test_the_mean_lies_inside_the_support(forecast: Forecast) -> None:
    assert forecast.quantile(0) - 1e-12 <= forecast.mean() <= forecast.quantile(1) + 1e-12


@settings(max_examples=25)
@given(forecasts())
def test_the_mean_is_the_integral_of_the_quantiles(forecast: Forecast) -> None:
    middles = (np.arange(500) + 0.5) / 500
    support = forecast.knots[-1] - forecast.knots[0]
    assert forecast.mean() == pytest.approx(np.mean([forecast.quantile(q) for q in middles]), abs=support / 500)


@settings(max_examples=25)
@given(forecasts(), st.floats(-8, 8))
def test_expected_improvement_is_the_integral_of_what_lies_above(forecast: Forecast, best: float) -> None:
    points = np.linspace(best, max(best, forecast.knots[-1]), 4001)
    middles = (points[1:] + points[:-1]) / 2
    above = sum(1 - forecast.cdf_at(x) for x in middles) * (points[1] - points[0])
    assert forecast.expected_improvement(best) == pytest.approx((1 - forecast.p_fail) * above, abs=2e-3)


@given(forecasts(), st.floats(-10, 10))
def test_expected_improvement_is_at_least_that_of_the_mean(forecast: Forecast, best: float) -> None:
    least = max(0.0, forecast.mean() - best)
    assert forecast.expected_improvement(best) >= (1 - forecast.p_fail) * least - 1e-9


def test_expected_improvement_has_known_values() -> None:
    even = Forecast((0.0, 1.0), (0.0, 1.0), p_fail=0.2)
    for best, expected in ((-1.0, 1.5), (0.0, 0.5), (0.5, 0.125), (1.0, 0.0), (3.0, 0.0)):
        assert even.expected_improvement(best) == pytest.approx(0.8 * expected)


@given(forecasts(), st.sampled_from(["max_probability", "entropy", "width"]))
def test_confidence_lies_between_0_and_1(forecast: Forecast, kind) -> None:
    assert 0 <= forecast.confidence(kind) <= 1


@pytest.mark.parametrize(
    ("kind", "sure", "uniform"),
    [("max_probability", 1.0, 0.125), ("entropy", 1.0, 0.0), ("width", 1 / 1.4, 1 / (1 + 2.2 + 2.2))],
)
def test_confidence_has_known_values(kind, sure: float, uniform: float) -> None:
    assert Forecast.from_bins([0, 0, 0, 0, 1, 0, 0, 0]).confidence(kind) == pytest.approx(sure)
    assert Forecast.from_bins([1] * 8).confidence(kind) == pytest.approx(uniform)


def test_a_forecast_has_known_values() -> None:
    forecast = Forecast.from_bins([0, 0, 0.05, 0.15, 0.5, 0.2, 0.1, 0], p_fail=0.5)
    assert forecast.quantile(0.2) == pytest.approx(0)
    assert forecast.quantile(0.7) == pytest.approx(0.5)
    assert forecast.mean() == pytest.approx(0.05 * -0.75 + 0.15 * -0.25 + 0.5 * 0.25 + 0.2 * 0.75 + 0.1 * 1.5)
    assert forecast.exceeds(1.0) == pytest.approx(0.4)
    assert forecast.exceeds(0.0) == 0.5
    assert forecast.exceeds(math.inf) == 0


@given(st.permutations([-1.0, 0.0, 0.5, 2.0]))
def test_crossing_quantiles_are_sorted(values: list[float]) -> None:
    levels = [0.1, 0.4, 0.6, 0.9]
    assert Forecast.from_quantiles(levels, values) == Forecast.from_quantiles(levels, sorted(values))


def test_given_quantiles_come_back() -> None:
    forecast = Forecast.from_quantiles([0.1, 0.5, 0.9], [-1.0, 0.25, 1.0])
    assert [forecast.quantile(q) for q in (0.1, 0.5, 0.9)] == pytest.approx([-1.0, 0.25, 1.0])


def test_tails_keep_the_density_beside_them() -> None:
    forecast = Forecast.from_quantiles([0.1, 0.5, 0.75], [-1.0, 0.0, 1.0])
    assert forecast.quantile(0) == pytest.approx(-1.0 - 0.1 / 0.4)
    assert forecast.quantile(1) == pytest.approx(1.0 + 0.25 / 0.25)


def test_equal_quantiles_make_a_steep_but_continuous_cdf() -> None:
    forecast = Forecast.from_quantiles([0.1, 0.5, 0.9], [1.0, 1.0, 1.0])
    assert forecast.mean() == pytest.approx(1.0, abs=1e-5)
    assert forecast.confidence("width") == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize(
    ("bins", "message"),
    [
        ([1.0] * 7, "8 bin probabilities"),
        ([1.0] * 9, "8 bin probabilities"),
        ([[1.0] * 8], "8 bin probabilities"),
        ([0.0] * 8, "positive, finite sum"),
        ([1e308] * 8, "positive, finite sum"),
        ([1.0] * 7 + [-0.1], "not negative"),
        ([1.0] * 7 + [math.nan], "finite"),
        ([1.0] * 7 + [math.inf], "finite"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_bad_bins_are_refused(bins: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Forecast.from_bins(bins)


@pytest.mark.parametrize("p_fail", [-0.1, 1.1, math.nan])
def test_a_bad_p_fail_is_refused(p_fail: float) -> None:
    with pytest.raises(ValueError, match="p_fail must lie"):
        Forecast.from_bins([1.0] * 8, p_fail)
    with pytest.raises(ValueError, match="p_fail must lie"):
        Forecast.from_quantiles([0.1, 0.9], [0.0, 1.0], p_fail)


@pytest.mark.parametrize(
    ("levels", "values", "message"),
    [
        ([0.5], [0.0], "two or more"),
        ([0.1, 0.9], [0.0], "value for each"),
        ([0.0, 0.9], [0.0, 1.0], "inside"),
        ([0.1, 1.0], [0.0, 1.0], "inside"),
        ([0.9, 0.1], [0.0, 1.0], "increase"),
        ([0.1, math.nan], [0.0, 1.0], "increase"),
        ([0.1, 0.9], [0.0, math.nan], "numbers within"),
        ([0.1, 0.9], [0.0, 65.0], "numbers within"),
    ],
)
def test_bad_quantiles_are_refused(levels: list[float], values: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Forecast.from_quantiles(levels, values)


@pytest.mark.parametrize(
    ("knots", "cdf", "message"),
    [
        ((0.0,), (1.0,), "two or more"),
        ((0.0, 1.0), (0.0, 0.5, 1.0), "two or more"),
        ((1.0, 1.0), (0.0, 1.0), "strictly increasing"),
        ((0.0, math.inf), (0.0, 1.0), "finite"),
        ((0.0, 1.0), (0.1, 1.0), "from 0 to 1"),
        ((0.0, 1.0, 2.0), (0.0, math.nan, 1.0), "from 0 to 1"),
    ],
)
def test_a_cdf_that_is_none_is_refused(knots: tuple[float, ...], cdf: tuple[float, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Forecast(knots, cdf)


def test_bad_questions_are_refused() -> None:
    forecast = Forecast.from_bins([1] * 8)
    with pytest.raises(ValueError, match="level"):
        forecast.quantile(1.5)
    with pytest.raises(ValueError, match="speedup"):
        forecast.exceeds(math.nan)
    with pytest.raises(ValueError, match="unknown kind"):
        forecast.confidence("mood")  # type: ignore[arg-type]


def test_a_forecast_is_frozen_and_compares_by_value() -> None:
    forecast = Forecast.from_bins([1] * 8)
    assert forecast == Forecast.from_bins([1] * 8)
    assert hash(forecast) == hash(Forecast.from_bins([1] * 8))
    with pytest.raises(dataclasses.FrozenInstanceError):
        forecast.p_fail = 0.5  # type: ignore[misc]
