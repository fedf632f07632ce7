"""The suite `recalibration`: scores of forecasts before and after a correction that is fitted on another split.

A temperature for the bins and an isotonic curve for the probability of failure are fitted on the validation split. The
errors that they remove are errors of calibration; the remaining errors are not.
"""

from __future__ import annotations

import numpy as np

from presage.core import scoring
from presage.core.errors import PresageError
from presage.core.recalibration import Isotonic, Temperature
from presage.core.statistics import Interval
from presage.evaluations.outcomes import Floats, Outcomes
from presage.evaluations.suites import Findings

FITTED_ON = "validation"


def recalibration(outcomes: Outcomes, fitted: Outcomes) -> Findings:
    """The metrics recalibrated_ece, _nll and _rps, before and after the temperature; and failure_brier, the squared
    error of p_fail, before and after the isotonic curve."""
    seen = fitted.where(fitted.ok & ~fitted.missing)
    if not seen.truth.size:
        raise PresageError(f"there is no forecast of the {FITTED_ON} split to fit a recalibration on")
    ok = outcomes.where(outcomes.ok & ~outcomes.missing)
    said = {"before": ok.probabilities, "temperature": _temperature(seen).apply(ok.probabilities)}
    bins = ok.bins
    told = outcomes.where(~outcomes.missing)
    known = fitted.where(~fitted.missing)
    curve = Isotonic.fit(known.p_fail, ~known.ok)
    failing = {"before": told.p_fail, "isotonic": curve.apply(told.p_fail)}
    return Findings(
        {
            "recalibrated_ece": {name: _ece(ok, p) for name, p in said.items()},
            "recalibrated_nll": {
                name: _mean(ok, -np.log(np.maximum(p[np.arange(bins.size), bins], scoring.NLL_FLOOR)))
                for name, p in said.items()
            },
            "recalibrated_rps": {name: _rps(ok, p) for name, p in said.items()},
            "failure_brier": {name: _mean(told, (p - ~told.ok) ** 2) for name, p in failing.items()},
        }
    )


def _temperature(seen: Outcomes) -> Temperature:
    return Temperature.fit(seen.probabilities, seen.bins)


def _ece(ok: Outcomes, p: Floats) -> Interval:
    confidence, correct = p.max(axis=1), scoring.hits(p, ok.bins)
    return scoring.bootstrap(lambda rows: scoring.ece(confidence[rows], correct[rows]), ok.operation, resamples=200)


def _rps(ok: Outcomes, p: Floats) -> Interval:
    bins = ok.bins
    gap = np.cumsum(p - (np.arange(p.shape[1]) == bins[:, None]), axis=1)[:, :-1]
    return _mean(ok, np.mean(gap**2, axis=1))


def _mean(outcomes: Outcomes, values: Floats) -> Interval:
    return scoring.bootstrap(lambda rows: float(values[rows].mean()), outcomes.operation, resamples=200)
