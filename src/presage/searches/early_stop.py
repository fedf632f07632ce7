"""Stopping early: when nothing new comes, a search ends if what is left is so unlikely to win that the policy's promise
allows to leave it."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from presage.forecasters.faults import why_broken
from presage.searches import forecasting, words
from presage.searches.session import Session
from presage.searches.state import DRY, UNDECIDED

_FEWEST = 16
"""No search stops early after fewer measurements: they are what tells whether the forecasts can be believed."""


class EarlyStop:
    """Whether this search may stop, and what is left if it does."""

    def __init__(self, session: Session, is_wanted: bool) -> None:
        self._session, self._is_wanted = session, is_wanted

    def look(self) -> None:
        """What all that is left is worth by what is known now, also what was trusted: at most the sum of the chances of
        winning. Where something measured has surprised the forecasts, they are stretched until it would not have."""
        session, state = self._session, self._session.state
        measured = set(session.store.measured())
        left = [session.briefing.kernel(hash, False) for hash in sorted(state.known - measured)]
        left = [candidate for candidate in left if not why_broken(candidate.reports)]
        said, _ = forecasting.predictions(session, left, session.allowance())
        forecasts = [prediction.forecast for prediction in said.values()]
        bar = state.best_value + math.log2(1 + session.parts.policy.delta)
        chances = [each.stretched(state.surprise).exceeds(2**bar) if each else 1.0 for each in forecasts]
        chance = min(1.0, sum(chances)) if len(chances) == len(left) else 1.0
        session.append("looked", {"left": len(left), "chance": chance})

    def can_stop(self) -> bool:
        """Whether what is left is worth so little that the policy's promise allows to leave it."""
        state, alpha = self._session.state, self._session.parts.policy.alpha
        has_looked = self._is_wanted and state.has_looked
        return has_looked and alpha is not None and state.outlook is not None and state.outlook.chance <= alpha

    def why_not(self) -> str:
        """Why this search cannot stop early as it stands, whatever is left; empty where it can."""
        session, state, forecaster = self._session, self._session.state, self._session.parts.forecaster
        if not self._is_wanted:
            return "it was not asked for"
        if session.parts.policy.alpha is None:
            return "the policy promises nothing of what it leaves behind"
        if not forecaster or not forecaster.is_sure(session.briefing.task()):
            return "nothing shows that these forecasts can be relied on for it"
        if state.dry < DRY or len(state.known) > UNDECIDED:
            return "there may be more kernels than were proposed"
        if state.spent.measurements <= _FEWEST:
            return f"there were no more than {_FEWEST} measurements"
        return ""

    def told(self) -> dict[str, Any]:
        """Whether the search stopped early, and if not, why not."""
        stopped, outlook = self.can_stop(), self._session.state.outlook
        seen = words.outlook(outlook.left, outlook.chance, self._session.parts.policy.delta) if outlook else ""
        why_not = "" if stopped else self.why_not() or seen or "the budget was spent first"
        return {"stopped": stopped, "why_not": why_not, **(asdict(outlook) if outlook else {})}
