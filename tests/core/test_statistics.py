"""Medians, ratios and their intervals: known values, and the properties that every sample has."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from presage import Interval
from presage.core.statistics import Parts, median_interval, median_of_processes, speedup_interval

times = st.lists(st.floats(1e-3, 1e9), min_size=1, max_size=60)
rounds = st.lists(st.floats(1.0, 1e6), min_size=6, max_size=30)


@pytest.mark.parametrize(
    ("n", "low", "high"),
    # The ranks of the textbook's table for the median at 95 %.
    [(6, 1, 6), (7, 1, 7), (8, 1, 8), (9, 2, 8), (10, 2, 9), (15, 4, 12), (20, 6, 15), (30, 10, 21), (100, 40, 61)],
)
def test_the_interval_uses_the_tabled_ranks(n: int, low: int, high: int) -> None:
    assert median_interval(range(1, n + 1)) == Interval((n + 1) / 2, low, high)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_few_samples_prove_nothing(n: int) -> None:
    interval = median_interval([7.0] * n)
    assert interval == Interval(7.0, -math.inf, math.inf)
    assert interval.relative_half_width == math.inf


def test_no_samples_are_an_error() -> None:
    with pytest.raises(ValueError, match="no samples"):
        median_interval([])


@pytest.mark.parametrize(
    ("interval", "width"),
    [(Interval(10.0, 9.0, 11.0), 0.1), (Interval(4.0, 4.0, 4.0), 0.0), (Interval(0.0, 0.0, 0.0), math.inf)],
)
def test_the_half_width_is_relative(interval: Interval, width: float) -> None:
    assert interval.relative_half_width == pytest.approx(width)


@given(times)
def test_the_interval_holds_the_median(samples: list[float]) -> None:
    value, low, high = median_interval(samples)
    assert low <= value <= high
    assert value == pytest.approx(float(np.median(samples)))


@given(times, st.randoms())
def test_the_order_of_samples_does_not_matter(samples: list[float], random) -> None:
    shuffled = list(samples)
    random.shuffle(shuffled)
    assert median_interval(shuffled) == median_interval(samples)


@given(times, st.sampled_from([0.25, 2.0, 1024.0]))
def test_seconds_or_nanoseconds_give_the_same_interval(samples: list[float], scale: float) -> None:
    value, low, high = median_interval(samples)
    assert median_interval(np.array(samples) * scale) == (value * scale, low * scale, high * scale)


@pytest.mark.parametrize("draw", ["normal", "lognormal", "exponential", "uniform"])
def test_the_median_is_inside_at_least_95_times_in_100(draw: str) -> None:
    rng = np.random.default_rng(1)
    truth = {"normal": 0.0, "lognormal": 1.0, "exponential": math.log(2), "uniform": 0.5}[draw]
    hits = 0
    for _ in range(2000):
        _, low, high = median_interval(getattr(rng, draw)(size=25))
        hits += low <= truth <= high
    assert hits / 2000 > 0.94


def in_processes(rng: np.random.Generator, middle: float) -> list[np.ndarray]:
    """Samples of a kernel from four processes, each of which shifts all that runs in it."""
    return [middle * math.exp(rng.normal(0, 0.03)) * rng.lognormal(sigma=0.01, size=64) for _ in range(4)]


def test_processes_count_where_each_shifts_its_samples() -> None:
    rng = np.random.default_rng(4)
    hits = naive = 0
    for _ in range(1000):
        parts = in_processes(rng, 5.0)
        _, low, high = median_of_processes(parts)
        hits += low <= 5.0 <= high
        _, low, high = median_interval(np.concatenate(parts))
        naive += low <= 5.0 <= high
    assert 0.93 < hits / 1000 < 0.97
    assert naive / 1000 < 0.5


@given(times)
def test_one_process_has_the_interval_of_its_samples(samples: list[float]) -> None:
    assert median_of_processes([np.array(samples)]) == median_interval(samples)


def test_three_processes_have_students_interval() -> None:
    value, low, high = median_of_processes([np.full(8, math.exp(x)) for x in (0.9, 1.0, 1.1)])
    assert math.log(value) == pytest.approx(1.0)
    assert math.log(high) - 1 == pytest.approx(1 - math.log(low)) == pytest.approx(4.303 * 0.1 / math.sqrt(3))


# -- speedups ---------------------------------------------------------------------------------------------------------


def test_the_speedup_is_the_geometric_mean_over_cases() -> None:
    anchor, candidate = [[np.full(8, 8.0)], [np.full(8, 2.0)]], [[np.full(8, 1.0)], [np.full(8, 1.0)]]
    assert speedup_interval(anchor, candidate) == pytest.approx((4.0, 4.0, 4.0))


@given(rounds, rounds)
@settings(max_examples=30)
def test_a_over_b_is_the_inverse_of_b_over_a(a: list[float], b: list[float]) -> None:
    one, other = [np.array(a)], [np.array(b)]
    forth, back = speedup_interval([one], [other]), speedup_interval([other], [one])
    assert forth.value * back.value == pytest.approx(1.0)
    assert forth.low * back.high == pytest.approx(1.0)
    assert forth.low <= forth.value * (1 + 1e-9)
    assert forth.value <= forth.high * (1 + 1e-9)


@given(rounds, st.floats(0.1, 10.0))
@settings(max_examples=30)
def test_drift_that_both_share_cancels(drift: list[float], ratio: float) -> None:
    shared = np.array(drift)
    assert speedup_interval([[shared * ratio]], [[shared]]) == pytest.approx((ratio, ratio, ratio))


def test_the_interval_holds_the_true_speedup() -> None:
    rng = np.random.default_rng(2)
    hits = 0
    for seed in range(300):
        a, b = 1.3 * rng.lognormal(sigma=0.1, size=30), rng.lognormal(sigma=0.1, size=30)
        _, low, high = speedup_interval([[a]], [[b]], resamples=400, seed=seed)
        hits += low <= 1.3 <= high
    assert hits / 300 > 0.9


@pytest.mark.parametrize("paired", [True, False])
def test_the_interval_holds_the_true_speedup_over_processes(paired: bool) -> None:
    rng = np.random.default_rng(5)
    hits = 0
    for seed in range(300):
        a, b = in_processes(rng, 13.0), in_processes(rng, 10.0)
        value, low, high = speedup_interval([a, [np.full(8, 4.0)]], [b, [np.full(8, 4.0)]], paired=paired, seed=seed)
        assert low < value < high
        hits += low <= math.sqrt(1.3) <= high
    assert hits / 300 > 0.93


DRAWS = {
    "normal": lambda rng, n: rng.normal(0, 0.1, n),
    "skewed": lambda rng, n: rng.exponential(0.1, n) - 0.1 * math.log(2),
    "with outliers": lambda rng, n: rng.normal(0, 0.02, n) + (rng.random(n) < 0.1) * rng.normal(0, 0.5, n),
}


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("cases", [1, 3])
@pytest.mark.parametrize("n", [2, 3, 5, 6, 8, 12])
@pytest.mark.parametrize("paired", [True, False])
def test_few_samples_claim_no_more_than_they_can(n: int, cases: int, draw: str, paired: bool) -> None:
    """The truth lies within at least 95 times in 100, less what 200 trials may be off."""
    rng = np.random.default_rng(n)
    hits, widths = 0, []
    for seed in range(200):
        a = [[1.3 * np.exp(DRAWS[draw](rng, n))] for _ in range(cases)]
        c = [[np.exp(np.zeros(n) if paired else DRAWS[draw](rng, n))] for _ in range(cases)]
        value, low, high = speedup_interval(a, c, paired=paired, resamples=300, seed=seed)
        assert low <= value <= high
        hits += low <= 1.3 <= high
        widths.append(math.log(high / low))
    assert hits / 200 > 0.91
    assert n < 6 or np.median(widths) < 1.0


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("samples", [[4.0], [4.0, 4.0], [4.0] * 5])
def test_one_sample_or_a_few_equal_ones_tell_nothing_of_their_spread(samples: list[float], paired: bool) -> None:
    many = np.random.default_rng(0).lognormal(size=20)
    for anchor, candidate in (([np.array(samples)], [np.ones(len(samples))]), ([many], [many])):
        cases = [anchor, [many]], [candidate, [many]]
        interval = speedup_interval(*cases, paired=paired)
        assert interval.is_known == (anchor[0] is many)
    assert speedup_interval([[np.array(samples)]], [[np.ones(len(samples))]], paired=paired) == (4.0, 0.0, math.inf)


def test_the_same_samples_always_give_the_same_interval() -> None:
    a, b = np.random.default_rng(3).lognormal(size=(2, 20))
    assert speedup_interval([[a]], [[b]]) == speedup_interval([[a]], [[b]])


def test_surplus_rounds_are_left_out() -> None:
    assert speedup_interval([[np.array([4.0] * 6 + [99.0])]], [[np.full(6, 2.0)]]) == pytest.approx((2.0, 2.0, 2.0))


@pytest.mark.parametrize(
    ("anchor", "candidate"), [([], []), ([[np.ones(6)]], []), ([[np.ones(6)]], [[np.ones(6)]] * 2)]
)
def test_both_sides_need_the_same_cases(anchor: list[Parts], candidate: list[Parts]) -> None:
    with pytest.raises(ValueError, match="same, non-empty set of cases"):
        speedup_interval(anchor, candidate)
