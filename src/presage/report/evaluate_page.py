"""The page of an evaluation: figures of reliability, risk against coverage and recovery, and tables of every number."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from presage.core.errors import PresageError
from presage.core.files import read_limited
from presage.core.statistics import Interval
from presage.core.text import one_line
from presage.evaluations.comparison import Comparison
from presage.evaluations.evaluation import Evaluation
from presage.report import page
from presage.report.figure import Axis, Series, figure
from presage.report.html import Content, Html, address, join, tag
from presage.report.page import Page, Section

_PLACE = "/evaluations"
_LARGEST = 64 << 20
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
    """Return the page as one self-contained file."""
    return page.frozen(build(evaluations, comparisons))


def build(evaluations: Sequence[Evaluation], comparisons: Sequence[Comparison] = ()) -> Page:
    """Return the page of one or more forecasters on the same split."""
    first = evaluations[0]
    summary = f"{first.operations} operations of {first.recording}, split {first.split}; 95 % intervals by operation."
    sections = [Section("answer", "", join([_answer(evaluations), page.paragraph(one_line(summary, 300))]))]
    drawn = [each for each in (_reliability(evaluations), _risk_coverage(evaluations), _recovery(evaluations)) if each]
    if drawn:
        sections.append(Section("figures", "Figures", page.figures(drawn)))
    if comparisons:
        table = page.table(*differences(comparisons), "Differences")
        heading = f"Compared with {one_line(comparisons[0].baseline, 80)}"
        sections.append(Section("differences", heading, join([page.paragraph(how_compared(comparisons)), table])))
    sections.append(Section("numbers", "Numbers", page.table(*numbers(evaluations), "Numbers")))
    return Page("Forecasts against measurements", sections, _PLACE, (("Evaluations", _PLACE),))


def _answer(evaluations: Sequence[Evaluation]) -> Html:
    """Return the headline: the forecaster with the best ranked probability score."""
    scored = [(each.numbers["rps"].value, each.forecaster) for each in evaluations if "rps" in each.numbers]
    known = sorted((score, name) for score, name in scored if not math.isnan(score))
    if not known:
        return Html()
    others = f", of {len(known)} forecasters" if len(known) > 1 else ""
    told = (
        f"{one_line(known[0][1], 80)} forecasts best{others}: ranked probability score {known[0][0]:.3f}; 0 is perfect."
    )
    return tag("p", told if others else told.replace(" forecasts best", ""), class_="headline")


# -- saved evaluations ------------------------------------------------------------------------------------------------


def saved(folder: Path) -> dict[str, Path]:
    """Return the saved evaluations by name, from the folder of the runs and from its parent."""
    places = (folder, folder.absolute().parent)
    return {file.stem: file for place in reversed(places) for file in sorted(place.glob("*evaluation*.json"))}


def listed(found: Mapping[str, Path]) -> Page:
    """Return the page that lists all evaluations."""
    rows: list[Sequence[Content]] = []
    for name, file in found.items():
        link = tag("a", name, href=address("evaluations", name))
        try:
            evaluations, _ = load(file)
        except PresageError as error:
            rows.append((link, tag("span", str(error), class_="bad"), "", ""))
            continue
        first, names = evaluations[0], ", ".join(one_line(each.forecaster, 40) for each in evaluations)
        rows.append((link, one_line(first.recording, 40), one_line(first.split, 40), names))
    header = ["evaluation", "recording", "split", "forecasters"]
    hint = tag("p", "There is none yet. ", tag("code", "presage evaluate"), " makes one in the current folder.")
    return Page(
        "Evaluations", [Section("answer", "", page.table(rows, header, "Evaluations") if rows else hint)], _PLACE
    )


def shown(found: Mapping[str, Path], name: str) -> Page:
    """Return the page of the evaluation of this name. Raises PresageError if there is none."""
    if name not in found:
        raise PresageError(f"there is no evaluation {one_line(name, 80)}")
    return build(*load(found[name]))


def load(file: Path) -> tuple[list[Evaluation], list[Comparison]]:
    """Read a file that `presage evaluate` wrote. Raises PresageError for any other file."""
    try:
        document = json.loads(read_limited(file, _LARGEST))
        recording, operations = str(document["recording"]), int(document["operations"])
        evaluations = [Evaluation.from_json(each, recording, operations) for each in document["evaluations"]]
        comparisons = [Comparison.from_json(each) for each in document["comparisons"]]
    except OSError as error:
        raise PresageError(f"cannot read {file}: {error.strerror}") from error
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise PresageError(f"{file} is not an evaluation: {one_line(str(error), 80)}") from error
    if not evaluations:
        raise PresageError(f"{file} is an evaluation of no forecaster")
    return evaluations, comparisons


# -- tables and figures -----------------------------------------------------------------------------------------------


def numbers(evaluations: Sequence[Evaluation]) -> tuple[list[list[str]], list[str]]:
    """Return the rows and the header of a table with every number of every forecaster."""
    rows = [["n", *(str(each.n) for each in evaluations), "forecasts asked for"]]
    for name in dict.fromkeys(name for each in evaluations for name in each.numbers):
        values = [_shown(each.numbers.get(name)) for each in evaluations]
        rows.append([name, *values, _MEANINGS.get(name.split()[0], "")])
    return rows, ["", *(each.forecaster for each in evaluations), "meaning"]


def how_compared(comparisons: Sequence[Comparison]) -> str:
    """Return a sentence that explains the table of differences."""
    return (
        f"On the same kernels: the score less that of {comparisons[0].baseline}, with a 95 % interval and a p-value by"
        " operation. p-values are not corrected for the number of comparisons."
    )


def differences(comparisons: Sequence[Comparison]) -> tuple[list[list[str]], list[str]]:
    """Return the rows and the header of a table with every comparison."""
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


def _reliability(evaluations: Sequence[Evaluation]) -> Html | None:
    series = _series(evaluations, "reliability")
    axes = Axis("probability given to the likeliest bin", 0, 1), Axis("how often it was the true one", 0, 1)
    return figure("Reliability: on the diagonal is honest", *axes, series, diagonal=True) if series else None


def _risk_coverage(evaluations: Sequence[Evaluation]) -> Html | None:
    series = _series(evaluations, "risk_coverage")
    axes = Axis("share of forecasts trusted, the surest first", 0, 1), Axis("share of those in the wrong bin", 0, 1)
    return figure("Risk against coverage: lower is better", *axes, series) if series else None


def _recovery(evaluations: Sequence[Evaluation]) -> Html | None:
    series = _series(evaluations, "recovery")
    for x, y in [each.curves["recovery_random"] for each in evaluations if "recovery_random" in each.curves][:1]:
        series.append(Series("drawn at random", x.tolist(), y.tolist(), dashed=True))
    shares = Axis("share of the pool measured", log=True, ticks=(0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1))
    return (
        figure("Recovery: lower is better", shares, Axis("best found, slower than the pool's best by"), series)
        if series
        else None
    )
