"""The suite `parts`: scores over the kernels of one language, of one room, or of similar source length."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from presage.core import scoring
from presage.core.statistics import Interval
from presage.evaluations.outcomes import Mask, Outcomes
from presage.evaluations.suites import Findings, accuracy

_SCORES = ("exact", "rps", "nll")
_LENGTHS = (("short", 0.0, 1 / 3), ("middling", 1 / 3, 2 / 3), ("long", 2 / 3, 1.0))


def parts(outcomes: Outcomes) -> Findings:
    """The metrics exact_of, rps_of, nll_of and failure_auroc_of of each part, with intervals by operation."""
    metrics: dict[str, dict[str, Interval]] = {f"{score}_of": {} for score in (*_SCORES, "failure_auroc")}
    for name, chosen in _parted(outcomes):
        part = outcomes.where(chosen)
        found = accuracy(part).metrics
        for score in _SCORES:
            each = found[score]
            assert isinstance(each, Interval)
            metrics[f"{score}_of"][name] = each
        metrics["failure_auroc_of"][name] = _auroc(part)
    return Findings(metrics)


def _parted(outcomes: Outcomes) -> Iterator[tuple[str, Mask]]:
    for language in sorted(set(outcomes.language.tolist())):
        yield language, outcomes.language == language
    rooms = np.array(outcomes.rooms)[outcomes.operation]
    for room in sorted(set(rooms.tolist())):
        yield room, rooms == room
    if outcomes.length.size:
        for name, low, high in _LENGTHS:
            least, most = np.quantile(outcomes.length, [low, high])
            yield name, (outcomes.length >= least) & ((outcomes.length < most) | (high == 1.0))


def _auroc(part: Outcomes) -> Interval:
    failed, p_fail = ~part.ok, np.nan_to_num(part.p_fail, nan=0.5)
    return scoring.bootstrap(lambda rows: scoring.auroc(p_fail[rows], failed[rows]), part.operation, resamples=100)
