"""The formula sheet against values worked by hand, brute force over orders, and the rules for missing and empty."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from presage.core import scoring

pytestmark = pytest.mark.filterwarnings("error")

KNOWN = [0, 0, 0.05, 0.15, 0.5, 0.2, 0.1, 0]
MISSING = [math.nan] * 8
NOTHING = np.empty((0, 8))

few = st.integers(0, 3).map(float)
scored = st.lists(st.tuples(few, st.sampled_from([0.0, 0.25, 1.0])), min_size=1, max_size=6)
chosen = st.lists(st.tuples(few, st.sampled_from([0.5, 1.0, 2.0, 4.0])), min_size=1, max_size=6)


# --- Probabilities of bins


@pytest.mark.parametrize(
    ("metric", "at_4", "at_3"),
    [
        (scoring.half_brier, 0.1625, 0.5125),
        (scoring.rps, 0.020357, 0.106071),
        (scoring.nll, 0.693147, 1.897120),
        (scoring.exact, 1.0, 0.0),
        (scoring.within_one, 1.0, 1.0),
    ],
)
def test_known_values(metric, at_4: float, at_3: float) -> None:
    assert metric([KNOWN], [4]) == pytest.approx(at_4, abs=5e-7)
    assert metric([KNOWN], [3]) == pytest.approx(at_3, abs=5e-7)
    assert metric([KNOWN, KNOWN], [3, 4]) == pytest.approx((at_3 + at_4) / 2, abs=5e-7)


@pytest.mark.parametrize(
    ("metric", "best", "worst"),
    [(scoring.half_brier, 0, 1), (scoring.rps, 0, 1), (scoring.nll, 0, -math.log(scoring.NLL_FLOOR))],
)
def test_a_sure_forecast_is_best_or_worst(metric, best: float, worst: float) -> None:
    first = np.eye(8)[:1]
    assert metric(first, [0]) == pytest.approx(best)
    assert metric(first, [7]) == pytest.approx(worst)


@pytest.mark.parametrize("metric", [scoring.half_brier, scoring.rps, scoring.nll])
@pytest.mark.parametrize("truth", range(8))
def test_a_missing_forecast_is_scored_as_uniform(metric, truth: int) -> None:
    assert metric([MISSING], [truth]) == metric([[1 / 8] * 8], [truth])


def test_a_forecast_missing_in_part_is_missing() -> None:
    assert scoring.nll([[math.nan, *[1 / 7] * 7]], [3]) == pytest.approx(math.log(8))


@pytest.mark.parametrize("metric", [scoring.exact, scoring.within_one])
@pytest.mark.parametrize("truth", range(8))
def test_a_missing_forecast_is_never_correct(metric, truth: int) -> None:
    assert metric([MISSING], [truth]) == 0
    assert metric([MISSING, np.eye(8)[truth]], [truth, truth]) == 0.5


def test_equally_likely_bins_share_the_credit() -> None:
    assert scoring.exact([[1 / 8] * 8], [0]) == 1 / 8
    assert scoring.within_one([[1 / 8] * 8], [0]) == 2 / 8
    assert scoring.within_one([[1 / 8] * 8], [4]) == 3 / 8


@pytest.mark.parametrize("metric", [scoring.half_brier, scoring.rps, scoring.nll, scoring.exact, scoring.within_one])
def test_no_forecasts_have_no_score(metric) -> None:
    assert math.isnan(metric(NOTHING, []))
    assert math.isnan(metric([], []))


@pytest.mark.parametrize(
    ("probabilities", "truth", "message"),
    [
        ([KNOWN], [8], "true bin"),
        ([KNOWN], [-1], "true bin"),
        ([KNOWN], [1.5], "true bin"),
        ([KNOWN], [1, 2], "do not fit"),
        (KNOWN, [1], "do not fit"),
        ([[0.5, 0.6]], [0], "sum to 1"),
        ([[1.5, -0.5]], [0], "non-negative"),
    ],
)
def test_what_is_no_forecast_is_refused(probabilities, truth, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        scoring.half_brier(probabilities, truth)


@given(st.lists(st.integers(0, 9), min_size=8, max_size=8).filter(any), st.integers(0, 7))
def test_proper_scores_are_best_for_the_truth_in_expectation(weights: list[int], other: int) -> None:
    p = np.array(weights) / sum(weights)
    rival = (p + np.eye(8)[other]) / 2
    for metric in (scoring.half_brier, scoring.rps):
        honest, dishonest = (sum(p[t] * metric([f], [t]) for t in range(8)) for f in (p, rival))
        assert honest <= dishonest + 1e-12


# --- Confidence


@pytest.mark.parametrize("binning", ["equal_width", "equal_mass"])
def test_constant_confidence_is_off_by_its_distance_from_the_accuracy(binning) -> None:
    assert scoring.ece([0.7] * 9, [1, 0, 0, 1, 0, 0, 1, 0, 0], binning=binning) == pytest.approx(0.7 - 3 / 9)


def test_ece_has_known_values() -> None:
    confidence, correct = [0.1, 0.2, 0.6, 0.8], [0, 1, 1, 0]
    assert scoring.ece(confidence, correct, 2, "equal_width") == pytest.approx(0.5 * 0.35 + 0.5 * 0.2)
    assert scoring.ece(confidence, correct, 4, "equal_mass") == pytest.approx((0.1 + 0.8 + 0.4 + 0.8) / 4)
    assert scoring.ece([0.0, 1.0], [0, 1]) == 0


def test_bins_of_confidence_include_their_upper_edge() -> None:
    edges = [i / 10 for i in range(1, 11)]
    assert scoring.reliability_curve(edges, [1] * 10).weight.tolist() == [0.1] * 10


def test_equal_mass_bins_hold_equal_counts() -> None:
    curve = scoring.reliability_curve(np.linspace(0.5, 1, 20) ** 3, np.ones(20), 5, "equal_mass")
    assert curve.weight.tolist() == [0.2] * 5
    assert np.all(np.diff(curve.confidence) > 0)


@given(st.lists(st.tuples(st.sampled_from([0.1, 0.5, 0.9]), st.booleans()), min_size=1), st.randoms())
def test_ece_does_not_depend_on_the_order(rows, random) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)
    for binning in ("equal_width", "equal_mass"):
        before, after = (scoring.ece(*zip(*r, strict=True), 3, binning) for r in (rows, shuffled))
        assert before == pytest.approx(after)


def test_a_missing_confidence_is_zero_and_wrong() -> None:
    curve = scoring.reliability_curve([math.nan, 1.0], [1, 1])
    assert [v.tolist() for v in curve] == [[0, 1], [0, 1], [0.5, 0.5]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.2], [1]), "must lie"),
        (([0.5], [2]), "must lie"),
        (([0.5], [1, 0]), "one length"),
        (([0.5], [1], 0), "at least one bin"),
        (([0.5], [1], 5, "equal_joy"), "unknown binning"),
    ],
)
def test_bad_confidence_is_refused(arguments, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        scoring.ece(*arguments)


@given(scored)
@settings(max_examples=40)
def test_risk_is_the_average_over_all_orders_of_ties(rows) -> None:
    confidence, loss = map(np.array, zip(*rows, strict=True))
    n = len(rows)
    curves = [
        np.cumsum(loss[list(order)]) / np.arange(1, n + 1)
        for order in itertools.permutations(range(n))
        if np.all(np.diff(confidence[list(order)]) <= 0)
    ]
    curve = scoring.risk_coverage(confidence, loss)
    assert curve.risk == pytest.approx(np.mean(curves, axis=0))
    assert curve.coverage == pytest.approx(np.arange(1, n + 1) / n)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=50))
def test_constant_confidence_has_the_overall_risk(loss: list[float]) -> None:
    assert scoring.aurc([0.5] * len(loss), loss) == pytest.approx(np.mean(loss), rel=1e-12)
    assert scoring.aurc([math.nan] * len(loss), loss) == pytest.approx(np.mean(loss), rel=1e-12)


@given(scored)
def test_no_order_beats_the_ideal_one(rows) -> None:
    confidence, loss = map(np.array, zip(*rows, strict=True))
    assert scoring.excess_aurc(confidence, loss) >= -1e-12
    assert scoring.excess_aurc(-loss, loss) == 0


def test_aurc_has_known_values() -> None:
    assert scoring.aurc([3, 2, 1], [0, 0, 1]) == pytest.approx(1 / 9)
    assert scoring.aurc([1, 2, 3], [0, 0, 1]) == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)
    assert scoring.excess_aurc([1, 2, 3], [0, 0, 1]) == pytest.approx((1 + 1 / 2) / 3)


def test_a_missing_forecast_is_the_least_confident() -> None:
    assert scoring.risk_coverage([math.nan, 0.0], [1, 0]).risk.tolist() == [0, 0.5]
    assert scoring.auroc([math.nan, 0.0], [0, 1]) == 1
    with pytest.raises(ValueError, match="loss is missing"):
        scoring.aurc([0.5], [math.nan])


@given(st.lists(st.tuples(few, st.booleans()), max_size=12))
def test_auroc_counts_pairs(rows) -> None:
    pairs = [(a > b) + (a == b) / 2 for (a, x), (b, y) in itertools.product(rows, rows) if x and not y]
    expected = np.mean(pairs) if pairs else math.nan
    assert scoring.auroc([r[0] for r in rows], [r[1] for r in rows]) == pytest.approx(expected, nan_ok=True)


def test_intervals_hold_their_ends_and_missing_ones_miss() -> None:
    low, high = [0, 0, 0, math.nan, 0], [1, 1, 1, 1, math.nan]
    assert scoring.interval_coverage(low, high, [0, 1, 1.5, 0.5, 0.5]) == pytest.approx(2 / 5)


# --- Choosing within groups


def brute_choice(rows, k: int) -> tuple[float, float]:
    """Regret and recovery of the k predicted best, averaged over every order that the prediction allows."""
    best = max(S for _, S in rows)
    found = [
        max(S for _, S in order[:k])
        for order in itertools.permutations(rows)
        if all(a[0] >= b[0] for a, b in itertools.pairwise(order))
    ]
    return float(np.mean([best / f - 1 for f in found])), float(np.mean([f == best for f in found]))


@given(chosen, st.integers(1, 7))
@settings(max_examples=40)
def test_choices_are_averaged_over_all_orders_of_ties(rows, k: int) -> None:
    predicted, speedups = zip(*rows, strict=True)
    groups = ["a"] * len(rows)
    regret, recovery = brute_choice(rows, k)
    assert scoring.top_k_regret(predicted, speedups, groups, k) == pytest.approx([regret])
    assert scoring.top_k_recovery(predicted, speedups, groups, k) == pytest.approx([recovery])


@given(chosen, st.integers(1, 7))
def test_a_random_choice_is_the_mean_over_all_subsets(rows, k: int) -> None:
    speedups = [S for _, S in rows]
    subsets = [max(c) for c in itertools.combinations(speedups, min(k, len(speedups)))]
    groups, best = [0] * len(rows), max(speedups)
    assert scoring.random_k_regret(speedups, groups, k) == pytest.approx([np.mean([best / f - 1 for f in subsets])])
    recovered = scoring.top_k_recovery(np.zeros(len(rows)), speedups, groups, k)
    assert recovered == pytest.approx([np.mean([f == best for f in subsets])])


def test_a_large_group_needs_no_large_numbers() -> None:
    S = np.arange(1.0, 5001.0)
    assert scoring.top_k_recovery(np.zeros(5000), S, np.zeros(5000), 2500) == pytest.approx([0.5])
    assert np.all(np.isfinite(scoring.random_k_regret(S, np.zeros(5000), 2500)))


def test_each_group_has_its_own_value_in_sorted_order() -> None:
    groups = ["b", "a", "b", "a"]
    assert scoring.top_k_regret([1, 1, 2, 2], [1.0, 3.0, 2.0, 1.0], groups, 1).tolist() == [2.0, 0.0]
    assert scoring.top_k_recovery([1, 1, 2, 2], [1.0, 3.0, 2.0, 1.0], groups, 1).tolist() == [0.0, 1.0]


def test_a_missing_prediction_is_chosen_last() -> None:
    assert scoring.top_k_recovery([math.nan, 0.0], [2.0, 1.0], [0, 0], 1).tolist() == [0.0]
    assert scoring.top_k_recovery([math.nan] * 4, [2.0, 1.0, 1.0, 1.0], [0] * 4, 1).tolist() == [0.25]


@pytest.mark.parametrize(
    ("speedups", "groups", "k", "message"),
    [
        ([1.0, 2.0], [0, 0], 0, "at least one"),
        ([1.0, 0.0], [0, 0], 1, "positive"),
        ([1.0, math.nan], [0, 0], 1, "positive"),
        ([1.0, 2.0], [0], 1, "each of 2 rows"),
    ],
)
def test_bad_choices_are_refused(speedups, groups, k: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        scoring.top_k_regret([1, 2], speedups, groups, k)


@pytest.mark.parametrize(
    ("predicted", "truth", "rho"),
    [
        ([1, 2, 3], [10, 20, 30], 1),
        ([1, 2, 3], [30, 20, 10], -1),
        ([1, 2, 3, 4], [1, 3, 2, 4], 0.8),
        ([1, 2, 2, 3], [1, 2, 3, 4], 4.5 / math.sqrt(4.5 * 5)),
        ([5, 5, 5], [1, 2, 3], 0),
        ([math.nan] * 3, [1, 2, 3], 0),
        ([math.nan, 1, 2], [1, 2, 3], 1),
        ([1, 2, 3], [1, 1, 1], math.nan),
        ([1], [1], math.nan),
    ],
)
def test_spearman_has_known_values(predicted, truth, rho: float) -> None:
    assert scoring.spearman(predicted, truth, [0] * len(truth)) == pytest.approx([rho], nan_ok=True)


def test_nothing_has_no_value_and_no_warning() -> None:
    for metric in (scoring.ece, scoring.aurc, scoring.excess_aurc, scoring.auroc):
        assert math.isnan(metric([], []))
    assert math.isnan(scoring.ece([], [], binning="equal_mass"))
    assert math.isnan(scoring.interval_coverage([], [], []))
    assert scoring.spearman([], [], []).shape == scoring.top_k_regret([], [], [], 1).shape == (0,)
    assert scoring.top_k_recovery([], [], [], 1).shape == scoring.risk_coverage([], []).risk.shape == (0,)
    assert scoring.hits(NOTHING, []).shape == scoring.reliability_curve([], []).weight.shape == (0,)
    assert all(map(math.isnan, scoring.bootstrap(lambda rows: 1.0, [])))


# --- Intervals


def test_the_bootstrap_is_seeded() -> None:
    x = np.random.default_rng(0).normal(size=40)
    first, again, other = (
        scoring.bootstrap(lambda rows: float(x[rows].mean()), np.arange(40) // 4, resamples=200, seed=s)
        for s in (1, 1, 2)
    )
    assert first == again
    assert first != other
    assert first.low < first.value < first.high


def test_clustering_widens_the_interval() -> None:
    operations = np.repeat(np.arange(10), 20)
    x = operations % 2 + np.random.default_rng(0).normal(scale=0.01, size=200)

    def width(groups: np.ndarray) -> float:
        interval = scoring.bootstrap(lambda rows: float(x[rows].mean()), groups, resamples=300)
        return interval.high - interval.low

    # Ten operations of 0 or 1: the standard error is 0.5 / √10 by operation, 0.5 / √200 by row.
    assert width(operations) / width(np.arange(200)) == pytest.approx(math.sqrt(20), rel=0.25)
    assert width(operations) == pytest.approx(2 * 1.96 * 0.5 / math.sqrt(10), rel=0.2)


def test_one_operation_proves_nothing() -> None:
    assert scoring.bootstrap(lambda rows: 2.0, ["a", "a"]) == (2.0, -math.inf, math.inf)


def test_resamples_without_a_value_are_left_out() -> None:
    positive = np.array([1, 0, 1, 0, 1, 1])
    scores = np.array([0.9, 0.1, 0.8, 0.9, 0.5, 0.4])
    interval = scoring.bootstrap(lambda r: scoring.auroc(scores[r], positive[r]), [0, 0, 1, 1, 2, 2], resamples=100)
    assert 0 <= interval.low <= interval.value <= interval.high <= 1
    nothing = scoring.bootstrap(lambda rows: math.nan, [0, 1], resamples=10)
    assert all(map(math.isnan, nothing))
