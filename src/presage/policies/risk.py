"""The `risk` policy, the default: of the candidates that would have beaten the best by more than delta, the winners, at
most a share alpha is passed over.

A candidate's score is its forecast's probability of winning, and its rank the share of recent candidates that score
lower; ranks stay comparable while the best rises. Winners seen so far tell where winners rank: if the next one is as
likely to fall into any gap between their ranks, trusting with probability t0 below all of them, t1 above the lowest,
and so on, passes it over with probability (t0 + t1 + …) / (n + 1). So the policy spends alpha n on the t's, from the
lowest gap up. That it spends alpha n and not alpha (n + 1) is slack: with no winner seen, nothing is trusted. A winner
that had been trusted with probability t was seen with probability 1 - t only, and counts 1 / (1 - t).

Winners are few. So candidates that would have won some records ago, near winners, count as well, ranked as of then. But
above the lowest real winner, only what real winners alone allow is trusted. For a world that drifts, alpha itself is
lowered with each winner that might have been passed over, and recovers with each that was not (adaptive conformal
inference).

All that is learnt is learnt from what was measured, and from the chance that each decision carries with it, so that a
search that resumes needs to work out nothing again.
"""

from __future__ import annotations

import bisect
import itertools
import math
import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from presage.core.errors import PresageError
from presage.core.forecast import Forecast
from presage.policies.base import NO_FORECAST, Action, Decision, Policy, Standing

_RECENT = 256
"""Ranks are among so many candidates that were measured last."""
_FEWEST = 16
"""With fewer, nothing is ranked, and so nothing trusted."""
_GAMMA = 0.02
"""How fast alpha adapts."""
_TAIL = 0.025
"""Of the 95 % interval, the probability at either end."""

Score = tuple[float, float]
"""The probability of winning and, for the many whose forecast rules it out, how near the forecast's upper end comes."""


@dataclass(frozen=True)
class Winner:
    """A candidate that beat the best by more than delta, or would have some records ago."""

    forecast: Forecast
    level: float
    """log2 S of the best that it beat."""
    weight: float
    """One over the probability with which it was measured."""
    real: bool


class _Ranked:
    """A winner among the candidates that were recent when it was found. Most are forgotten before anybody asks for the
    rank, so it is worked out then."""

    def __init__(self, winner: Winner, margin: float, recent: tuple[tuple[Forecast, float], ...]) -> None:
        self.winner, self._margin, self._recent = winner, margin, recent

    @cached_property
    def rank(self) -> float:
        """The share of recent candidates with a lower score; it is one of them."""
        level = self.winner.level + self._margin
        own = _score(self.winner.forecast, level)
        below = sum(weight for forecast, weight in self._recent if _score(forecast, level) < own)
        total = sum(weight for _, weight in self._recent)
        self._recent = ()
        return below / total


@dataclass(frozen=True)
class _Field:
    """What recent candidates score against one best, as weights of increasing scores."""

    scores: list[Score]
    weights: list[float]
    """Cumulated, from 0; one more than scores."""

    def up_to(self, score: Score) -> float:
        """The share with a score that is no higher: the rank of a new candidate, which adds itself. So a tie, or the
        lowest score ever, is never below a winner that was just that."""
        return (self.weights[bisect.bisect_right(self.scores, score)] + 1) / (self.weights[-1] + 1)


@dataclass(frozen=True)
class _Table:
    """How far candidates of each rank are trusted, as of one standing."""

    standing: Standing
    field: _Field
    ranks: list[float]
    """Of winners, increasing."""
    chances: list[float]
    """The probability of trust below the first of them, above it, and so on; decreasing."""

    def place(self, score: Score) -> tuple[float, float]:
        """The rank of a candidate with this score, and the probability with which it is trusted."""
        rank = self.field.up_to(score)
        return rank, self.chances[bisect.bisect_left(self.ranks, rank)]


class _Recent:
    """The candidates that were measured last, sorted by what they score against the level asked for last: that changes
    with each new best, while candidates come all the time."""

    def __init__(self) -> None:
        self._all: deque[tuple[Forecast, float]] = deque(maxlen=_RECENT)
        self._level = math.nan
        self._sorted: list[tuple[Score, float]] = []

    def __len__(self) -> int:
        return len(self._all)

    def add(self, forecast: Forecast, weight: float) -> None:
        if not math.isnan(self._level):
            if len(self._all) == _RECENT:
                oldest, its_weight = self._all[0]
                del self._sorted[bisect.bisect_left(self._sorted, (_score(oldest, self._level), its_weight))]
            bisect.insort(self._sorted, (_score(forecast, self._level), weight))
        self._all.append((forecast, weight))

    def now(self) -> tuple[tuple[Forecast, float], ...]:
        """Each with its weight."""
        return tuple(self._all)

    def field(self, level: float) -> _Field:
        """What they score against this level."""
        if level != self._level:
            self._level = level
            self._sorted = sorted((_score(forecast, level), weight) for forecast, weight in self._all)
        weights = list(itertools.accumulate((weight for _, weight in self._sorted), initial=0.0))
        return _Field([score for score, _ in self._sorted], weights)


class Risk(Policy):
    """Trusts forecasts while at most a share alpha of the winners is missed. It audits some of what it trusts."""

    alpha: float

    def __init__(self, alpha: float = 0.05, delta: float = 0.05, audit: float = 0.1, near: int = 3) -> None:
        if not 0 < alpha < 1:
            raise PresageError(f"alpha, the share of winners that may be missed, lies between 0 and 1, not {alpha}")
        if not 0 <= delta < math.inf:
            raise PresageError(f"delta, by how much a winner beats the best, is 0 or more (0.05 for 5 %), not {delta}")
        if not 0 < audit < 1:
            raise PresageError(f"audit, the share of trust that is checked, lies between 0 and 1, not {audit}")
        if near < 0:
            raise PresageError(f"near, from how many records ago near winners count, is 0 or more, not {near}")
        self.alpha, self.delta, self.audit, self.near = alpha, delta, audit, near
        self.alpha_now = alpha
        self._margin = math.log2(1 + delta)
        self._recent = _Recent()
        self._unranked: list[Winner] = []
        self._real: list[_Ranked] = []
        self._near: deque[_Ranked] = deque(maxlen=_RECENT)
        self._levels: list[float] = []
        self._table: _Table | None = None
        self._found = 0
        self._trustable = self._promoted = self._promoted_winners = 0
        self._winning_odds: list[float] = []

    # -- deciding -----------------------------------------------------------------------------------------------------

    def decide(self, forecasts: Sequence[Forecast | None], standing: Standing, rng: random.Random) -> list[Decision]:
        return [NO_FORECAST if forecast is None else self._decision(forecast, standing, rng) for forecast in forecasts]

    def _decision(self, forecast: Forecast, standing: Standing, rng: random.Random) -> Decision:
        table = self._table_of(standing)
        score = self._score(forecast, standing.best)
        rank, chance = table.place(score)
        draw = rng.random()
        odds = (
            f"{score[0]:.1%} likely to win by more than {self.delta:.0%}, in the lowest {rank:.0%} of recent candidates"
        )
        if draw < chance:
            return Decision(
                Action.TRUST, f"{odds}; winners rank higher, so {chance:.0%} of such candidates are trusted", chance
            )
        if draw < chance / (1 - self.audit):
            return Decision(Action.AUDIT, f"{odds}; it would be trusted, and is measured to check that", chance)
        if chance > 0:
            why = f"winners rank higher, but after {self._found} of them only {chance:.0%} may be trusted"
        elif table.ranks:
            why = f"by the {self._found} winners so far, the next may rank there"
        else:
            why = f"{len(self._recent)} measurements and {self._found} winners are too few to trust anything"
        return Decision(Action.MEASURE, f"{odds}; {why}", chance)

    def _score(self, forecast: Forecast, best: float) -> Score:
        return _score(forecast, best + self._margin)

    def _table_of(self, standing: Standing) -> _Table:
        """The table of this standing: worked out when it is first needed, and kept until the next."""
        if self._table is None or self._table.standing != standing:
            found = sorted([*self._real, *self._near], key=lambda each: each.rank)
            chances = self._chances([each.winner for each in found])
            field = self._recent.field(standing.best + self._margin)
            self._table = _Table(standing, field, [each.rank for each in found], chances)
        return self._table

    def _chances(self, winners: Sequence[Winner]) -> list[float]:
        """The probability of trust in each gap between these winners, sorted by rank, from below all of them."""
        left = self.alpha_now * sum(winner.weight for winner in winners)
        left_real = self.alpha_now * sum(winner.weight for winner in winners if winner.real)
        chances = [max(0.0, min(1 - self.audit, left))]
        left, left_real = left - chances[0], left_real - chances[0]
        for winner in winners:
            least = min(left, left_real) if winner.real else left
            chance = max(0.0, min(chances[-1], least / winner.weight))
            left -= chance * winner.weight
            left_real -= chance * winner.weight * winner.real
            chances.append(chance)
        return chances

    # -- learning -----------------------------------------------------------------------------------------------------

    def observe(self, forecast: Forecast | None, decision: Decision, standing: Standing, log2_S: float | None) -> None:
        best = standing.best
        if not self._levels or best > self._levels[-1] + self._margin:
            self._levels.append(best)
        if forecast is None:
            self._found += log2_S is not None and log2_S > best + self._margin
            return
        chance = decision.chance
        self._trustable += chance > 0
        self._recent.add(forecast, 1 / (1 - chance))
        if log2_S is not None:
            self._learn(forecast, best, log2_S, chance)
        if self._unranked and len(self._recent) >= _FEWEST:
            recent = self._recent.now()
            for winner in self._unranked:
                (self._real if winner.real else self._near).append(_Ranked(winner, self._margin, recent))
            self._unranked.clear()

    def _learn(self, forecast: Forecast, best: float, log2_S: float, chance: float) -> None:
        weight = 1 / (1 - chance)
        lower = [level for level in self._levels if level < best][-self.near :] if self.near else []
        beaten = [level for level in (*lower, best) if log2_S > level + self._margin]
        if not beaten:
            return
        real = beaten[-1] == best
        self._unranked.append(Winner(forecast, beaten[-1], weight, real))
        if real:
            self._found += 1
            self._winning_odds.append(chance * weight)
            self._adapt((self.alpha - chance) * weight)

    def observe_trusted(self, best: float, log2_S: float | None) -> None:
        self._promoted += 1
        if log2_S is not None and log2_S > best + self._margin:
            self._promoted_winners += 1
            self._found += 1
            self._adapt(self.alpha - 1)

    def _adapt(self, surplus: float) -> None:
        self.alpha_now = min(self.alpha, max(0.0, self.alpha_now + _GAMMA * surplus))

    # -- reporting ----------------------------------------------------------------------------------------------------

    def missed(self, unmeasured: int) -> dict[str, float]:
        """Of all winners, the share that was trusted and is not measured to this day.

        A winner that was measured although it could have been trusted with probability t stands for t / (1 - t) that
        were trusted; those of them that have been measured since are known. The upper end asks how many there can be if
        candidates that were trusted and not measured win no more often than the others that could have been trusted:
        those that were drawn to be measured, and the most promising, which were measured since.
        """
        seen = [odds for odds in self._winning_odds if odds > 0]
        tried, won = self._trustable + self._promoted, len(seen) + self._promoted_winners
        high = _most(tried, won, unmeasured)
        low = _fewest(len(seen), sum(seen) / len(seen)) - self._promoted_winners if seen else 0
        low = min(high, max(0, low))
        likely = min(float(high), max(float(low), sum(seen) - self._promoted_winners))
        rate, lowest, highest = (count / (self._found + count) if count else 0.0 for count in (likely, low, high))
        return {"rate": rate, "low": lowest, "high": highest, "likely": likely, "most": high}


def _most(tried: int, won: int, others: int) -> int:
    """The upper end of the 95 % interval of how many of the others would win, if the tried ones, of which so many did,
    are any of them all.

    >>> _most(tried=37, won=0, others=2), _most(tried=100, won=0, others=100), _most(tried=5, won=1, others=0)
    (1, 5, 0)
    """

    def is_unlikely(count: int) -> bool:
        return _drawn_at_most(won, tried, won + count, tried + others) < _TAIL

    return bisect.bisect_left(range(1, others + 1), True, key=is_unlikely)


def _fewest(seen: int, odds: float) -> int:
    """The lower end of the 95 % interval of how many were not seen, if each was so at these odds and so many were."""
    chance = 1 / (1 + odds)
    low = 0
    while 1 - _at_most(seen - 1, seen + low, chance) < _TAIL:
        low += 1
    return low


def _at_most(k: int, n: int, p: float) -> float:
    """P(X <= k), X ~ Binomial(n, p)."""
    return math.fsum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k + 1))


def _drawn_at_most(k: int, draws: int, winners: int, total: int) -> float:
    """P(X <= k), X the winners among so many of a total that were drawn without replacement.

    >>> round(_drawn_at_most(0, draws=1, winners=1, total=4), 9)
    0.75
    """
    fewest = max(0, draws + winners - total)
    ways = (
        _log_ways(winners, i) + _log_ways(total - winners, draws - i) for i in range(fewest, min(k, draws, winners) + 1)
    )
    return math.fsum(math.exp(each - _log_ways(total, draws)) for each in ways)


def _log_ways(n: int, k: int) -> float:
    """The logarithm of n choose k."""
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def _score(forecast: Forecast, level: float) -> Score:
    return forecast.exceeds(2**level), forecast.knots[-1] - level
