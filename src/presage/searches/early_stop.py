"""Early stopping: end a search when it is improbable that a remaining kernel is faster than the best by more than a
given share.

The remaining kernels are all that were proposed and not measured, including trusted ones. Each is forecast again with
everything known now, and the probabilities that each is faster by that share are summed. Forecast errors of one
operation are correlated in an unknown way. The sum is an upper bound on the probability that any of the kernels is
faster, whatever the correlation. The bound is nearly tight: when a search stops, nearly all probabilities are 0,
because forecasts have bounded support, and the others are small. Overconfident forecasts are corrected: if a
measurement was k times as far from its forecast's median as the forecast's end on that side, all forecasts are
stretched by k.

Kernels that prevent stopping are measured first: a trusted kernel that is now among the most likely to be faster is
measured after all. If more can be proposed, the search goes on proposing, and measures nothing, until several steps
(DRY) in a row have brought nothing that is likely to be faster.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from typing import Any

from presage.searches import forecasting, words
from presage.searches.session import Session
from presage.searches.state import DRY, UNDECIDED

ALPHA = 0.05
"""The accepted probability that a faster kernel is left, if the policy does not define one."""
_FEWEST = 8
"""No search stops early with this many measurements or fewer: they show whether the forecasts can be relied on."""
_DOUBTED = 4
"""How many of the kernels most likely to be faster are checked for trusted ones."""


class EarlyStop:
    """Decides whether a search may stop early, and reports what is left."""

    def __init__(self, session: Session, until: float | None) -> None:
        """until: the share by which no remaining kernel should be faster; None to use the whole budget."""
        self._session, self._until = session, until
        self._alpha = session.parts.policy.alpha or ALPHA

    def should_look(self) -> bool:
        """Whether to look at the remaining kernels before anything else is measured."""
        return not self._session.state.has_looked and not self.why_not()

    def look(self) -> None:
        """Forecast all remaining kernels again, and store the probability that any of them is faster as an event."""
        session, state = self._session, self._session.state
        assert self._until is not None
        measured = set(session.store.measured())
        left = [session.briefing.kernel(hash, False) for hash in sorted(state.known - measured - state.broken)]
        said, _ = forecasting.predictions(session, left, session.allowance())
        forecasts = {hash: prediction.forecast for hash, prediction in said.items()}
        bar = state.best_value + math.log2(1 + self._until)
        chances = {h: f.stretched(state.surprise).exceeds(2**bar) if f else 1.0 for h, f in forecasts.items()}
        chance = min(1.0, sum(chances.values())) if len(chances) == len(left) else 1.0
        before = state.outlook.quiet if state.outlook else 0
        quiet = before + 1 if chance <= self._alpha else 0
        doubted = [] if quiet else self._doubted(chances)
        told = [[state.trusted[h], f.to_json() if (f := forecasts[h]) else None] for h in doubted]
        session.append("looked", {"left": len(left), "chance": chance, "quiet": quiet, "doubted": told})

    def _doubted(self, chances: Mapping[str, float]) -> list[str]:
        """The trusted kernels among those that are the most likely to be faster, by hash."""
        trusted = self._session.state.trusted
        likely = heapq.nlargest(
            _DOUBTED, (hash for hash in chances if chances[hash] > 0), key=lambda hash: chances[hash]
        )
        return [hash for hash in likely if hash in trusted]

    def can_stop(self) -> bool:
        """Whether the search may end: no remaining kernel is likely to be faster, and either this held for DRY looks in
        a row, or no more candidates can come."""
        state = self._session.state
        if self._until is None or not state.has_looked or state.outlook is None or not state.outlook.quiet:
            return False
        return state.outlook.quiet >= DRY or state.dry >= DRY or not self._session.can_propose()

    def why_not(self) -> str:
        """Why this search cannot stop early now, whatever kernels remain; empty if it can."""
        session, state, forecaster = self._session, self._session.state, self._session.parts.forecaster
        if self._until is None:
            return "it was not asked for; --until does that"
        if not forecaster or not forecaster.is_sure(session.briefing.task()):
            return "nothing shows that these forecasts can be relied on for it"
        if session.proposer.foreign and not session.proposer.is_list:
            return "nobody knows what else may be proposed"
        if len(state.known) > UNDECIDED:
            return f"there are more than {UNDECIDED:,} kernels to look at"
        if state.spent.measurements <= _FEWEST:
            return f"there were no more than {_FEWEST} measurements"
        return ""

    def told(self) -> dict[str, Any]:
        """Return whether the search stopped early, why not if it did not, and the numbers behind it."""
        stopped, outlook, until = self.can_stop(), self._session.state.outlook, self._until
        seen = words.outlook(outlook.left, outlook.chance, until) if outlook and until is not None else ""
        why_not = "" if stopped else self.why_not() or seen or "the budget was spent first"
        told = {"stopped": stopped, "why_not": why_not, "until": until, "alpha": self._alpha}
        limit, spent = self._session.budget.measurements, self._session.state.spent.measurements
        saved = {"saved": limit - spent, "limit": limit} if stopped and limit is not None else {}
        return told | saved | ({"left": outlook.left, "chance": outlook.chance} if outlook else {})

    def why(self) -> str:
        """Why the search ended, for a search that stopped early."""
        outlook, until = self._session.state.outlook, self._until
        assert outlook is not None
        assert until is not None
        return f"stopped early, since {words.outlook(outlook.left, outlook.chance, until)}"
