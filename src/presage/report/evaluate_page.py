"""The page of an evaluation: reliability, risk against coverage and recovery as figures, and every number in tables."""

from __future__ import annotations

import math
from collections.abc import Sequence

from presage.core.statistics import Interval
from presage.evaluations.comparison import Comparison
from presage.evaluations.evaluation import Evaluation
from presage.report import page
from presage.report.figure import Axis, Series, figure
from presage.report.page import Section

_MEANINGS = {
    "exact": "likeliest bin is the true one; higher is better",
    "within_one": "likeliest bin is at most one off; higher is better",
    "rps": "ranked probability score; lower is better",
    "half_brier": "half the Brier score; lower is better",
    "nll": "negative log-likelihood of the true bin; lower is better",
    "missing": "share of kernels without a forecast",
    "ece": "expected calibration error; lower is better",
    "coverage_90": "truths inside the 90 % interval; 0.9 is right",
    "width_90": "width of the 90 % interval, octaves",
    "spearman": "rank correlation within operations; higher is better",
    "aurc": "area under risk against coverage; lower is better",
    "excess_aurc": "the same above the ideal order's; lower is better",
    "accuracy_at_50": "exact-bin accuracy of the surer half; higher is better",
    "failure_auroc": "failures told from working kernels; 0.5 is chance",
    "recovery": "best found after measuring this share of the pool, slower than the pool's best by",
    "recovery_random": "the same when the share is drawn at random",
    "recovery_vs_random": "the one as a share of the other; lower is better",
    "exact_of": "exact, of this part of the kernels",
    "rps_of": "rps, of this part of the kernels",
    "nll_of": "nll, of this part of the kernels",
    "failure_auroc_of": "failure_auroc, of this part of the kernels",
    "recalibrated_ece": "ece before and after a temperature that was fitted on the validation split",
    "recalibrated_nll": "nll before and after it",
    "recalibrated_rps": "rps before and after it",
    "failure_brier": "squared error of p_fail, before and after a curve that was fitted on the validation split",
    "injection": "forecasts changed by words that change no code; 0 is right",
}


def render(evaluations: Sequence[Evaluation], comparisons: Sequence[Comparison] = ()) -> str:
    """The page of one or more forecasters on the same split."""
    first = evaluations[0]
    summary = f"{first.operations} operations of {first.recording}, split {first.split}; 95 % intervals by operation."
    drawn = [each for each in (_reliability(evaluations), _risk_coverage(evaluations), _recovery(evaluations)) if each]
    sections = [Section("Figures", page.figures(drawn))] if drawn else []
    if comparisons:
        body = page.paragraph(how_compared(comparisons)) + page.table(*differences(comparisons))
        sections.append(Section(f"Compared with {comparisons[0].baseline}", body))
    sections.append(Section("Numbers", page.table(*numbers(evaluations))))
    return page.page("Forecasts against measurements", summary, sections)


def numbers(evaluations: Sequence[Evaluation]) -> tuple[list[list[str]], list[str]]:
    """Every number of every forecaster as a table's rows and header."""
    rows = [["n", *(str(each.n) for each in evaluations), "forecasts asked for"]]
    for name in dict.fromkeys(name for each in evaluations for name in each.numbers):
        values = [_shown(each.numbers.get(name)) for each in evaluations]
        rows.append([name, *values, _MEANINGS.get(name.split()[0], "")])
    return rows, ["", *(each.forecaster for each in evaluations), "meaning"]


def how_compared(comparisons: Sequence[Comparison]) -> str:
    """What the table of differences shows, in words."""
    return (
        f"On the same kernels: the score less that of {comparisons[0].baseline}, with a 95 % interval and a p-value by"
        " operation. p-values are not corrected for the number of comparisons."
    )


def differences(comparisons: Sequence[Comparison]) -> tuple[list[list[str]], list[str]]:
    """Every comparison as a table's rows and header."""
    rows = []
    for each in comparisons:
        value, low, high = each.difference
        known = math.isfinite(low) and math.isfinite(high)
        cells = [f"{value:+.4f}" + (f" ({low:+.4f} to {high:+.4f})" if known else ""), f"{each.p:.3g}", each.verdict]
        rows.append([each.score, each.forecaster, *cells])
    return rows, ["score", "forecaster", f"less {comparisons[0].baseline}", "p", "verdict"]


def _shown(number: Interval | None) -> str:
    if number is None or math.isnan(number.value):
        return "–"
    known = math.isfinite(number.low) and math.isfinite(number.high)
    return f"{number.value:.3f}" + (f" ({number.low:.3f} to {number.high:.3f})" if known else "")


def _series(evaluations: Sequence[Evaluation], name: str) -> list[Series]:
    return [
        Series(each.forecaster, each.curves[name][0].tolist(), each.curves[name][1].tolist())
        for each in evaluations
        if name in each.curves
    ]


def _reliability(evaluations: Sequence[Evaluation]) -> str:
    series = _series(evaluations, "reliability")
    axes = Axis("probability given to the likeliest bin", 0, 1), Axis("how often it was the true one", 0, 1)
    return figure("Reliability: on the diagonal is honest", *axes, series, diagonal=True) if series else ""


def _risk_coverage(evaluations: Sequence[Evaluation]) -> str:
    series = _series(evaluations, "risk_coverage")
    axes = Axis("share of forecasts trusted, the surest first", 0, 1), Axis("share of those in the wrong bin", 0, 1)
    return figure("Risk against coverage: lower is better", *axes, series) if series else ""


def _recovery(evaluations: Sequence[Evaluation]) -> str:
    series = _series(evaluations, "recovery")
    for x, y in [each.curves["recovery_random"] for each in evaluations if "recovery_random" in each.curves][:1]:
        series.append(Series("drawn at random", x.tolist(), y.tolist(), dashed=True))
    shares = Axis("share of the pool measured", log=True, ticks=(0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1))
    return (
        figure("Recovery: lower is better", shares, Axis("best found, slower than the pool's best by"), series)
        if series
        else ""
    )
