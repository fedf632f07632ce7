"""The `risk` policy, the default: trust forecasts such that at most a share alpha of the winners is passed over.

A winner is a candidate that beats the best kernel by more than delta. A candidate's score is the probability of winning
by its forecast. Its rank is the share of recent candidates with a lower score; ranks stay comparable while the best
rises. The n winners seen so far show where winners rank. Assume that the next winner is equally likely to fall into
each of the n + 1 gaps between their ranks. If candidates below all winners are trusted with probability t0, those above
the lowest winner with t1, and so on, the next winner is passed over with probability (t0 + t1 + …) / (n + 1). The
policy therefore distributes alpha n over the t's, from the lowest gap up. Using alpha n instead of alpha (n + 1) leaves
some slack: with no winner seen, nothing is trusted. A winner that could have been trusted with probability t was
measured with probability 1 - t only, so it counts as 1 / (1 - t) winners.

Winners are few. Near winners therefore count as well: candidates that would have beaten the best of some records ago.
They are ranked by their score against that earlier best. Above the lowest real winner, however, candidates are trusted
only as far as the real winners alone allow. To follow drift, alpha is lowered with each winner that might have been
passed over, and recovers with each that could not (adaptive conformal inference).

The policy learns only from measurements and from the chance stored with each decision. A search that resumes need not
compute any decision again.
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
"""A rank is relative to this many candidates, the last ones measured."""
_FEWEST = 16
"""With fewer recent candidates than this, no winner is ranked, and therefore nothing is trusted."""
_GAMMA = 0.02
"""The step size with which alpha adapts."""
_TAIL = 0.025
"""The probability outside the 95 % interval, at each end."""

Score = tuple[float, float]
"""The probability of winning, and by how many octaves the forecast's upper end exceeds the level to beat. The second
orders the many candidates whose probability is 0."""


@dataclass(frozen=True)
class Winner:
    """A measured candidate that beat the best, or the best of some records ago, by more than delta."""

    forecast: Forecast
    level: float
    """log2 S of the highest such best that the candidate beat."""
    weight: float
    """One over the probability with which the candidate was measured."""
    real: bool
    """Whether it beat the best at the time of the decision. False for a near winner."""


class _Ranked:
    """A winner, with the candidates that were recent when it was found. The rank is computed on first use, because most
    ranks are never used."""

    def __init__(self, winner: Winner, margin: float, recent: tuple[tuple[Forecast, float], ...]) -> None:
        self.winner, self._margin, self._recent = winner, margin, recent

    @cached_property
    def rank(self) -> float:
        """The share of recent candidates with a lower score. The winner itself is one of the recent candidates."""
        level = self.winner.level + self._margin
        own = _score(self.winner.forecast, level)
        below = sum(weight for forecast, weight in self._recent if _score(forecast, level) < own)
        total = sum(weight for _, weight in self._recent)
        self._recent = ()
        return below / total


@dataclass(frozen=True)
class _Field:
    """The scores of the recent candidates against one level, with their weights."""

    scores: list[Score]
    """Increasing."""
    weights: list[float]
    """The cumulative weights of `scores`, beginning with 0: one element more than `scores`."""

    def up_to(self, score: Score) -> float:
        """The rank of a new candidate: the share of candidates with an equal or lower score, the new one included. A
        candidate that ties with a winner, even at the lowest score ever, therefore never ranks below that winner."""
        return (self.weights[bisect.bisect_right(self.scores, score)] + 1) / (self.weights[-1] + 1)


@dataclass(frozen=True)
class _Table:
    """The probability with which candidates of each rank are trusted, for one standing."""

    standing: Standing
    field: _Field
    ranks: list[float]
    """The ranks of the winners, increasing."""
    chances: list[float]
    """The probability of trust in each gap between `ranks`, from below the first; decreasing. One more than `ranks`."""

    def place(self, score: Score) -> tuple[float, float]:
        """Return the rank of a candidate with this score, and the probability with which it is trusted."""
        rank = self.field.up_to(score)
        return rank, self.chances[bisect.bisect_left(self.ranks, rank)]


class _Recent:
    """The candidates measured last, kept sorted by their score against the level that was requested last. The level
    changes only with a new best, so sorting again is rare."""

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
        """The candidates' forecasts with their weights, in the order of measurement."""
        return tuple(self._all)

    def field(self, level: float) -> _Field:
        """The scores of the candidates against this level."""
        if level != self._level:
            self._level = level
            self._sorted = sorted((_score(forecast, level), weight) for forecast, weight in self._all)
        weights = list(itertools.accumulate((weight for _, weight in self._sorted), initial=0.0))
        return _Field([score for score, _ in self._sorted], weights)


class Risk(Policy):
    """Trusts forecasts while at most a share `alpha` of the winners is missed. Audits a share `audit` of the candidates
    that it would trust. A winner beats the best by more than `delta`; `near` is from how many records ago near winners
    count."""

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
        """The table for this standing, cached until the standing changes."""
        if self._table is None or self._table.standing != standing:
            found = sorted([*self._real, *self._near], key=lambda each: each.rank)
            chances = self._chances([each.winner for each in found])
            field = self._recent.field(standing.best + self._margin)
            self._table = _Table(standing, field, [each.rank for each in found], chances)
        return self._table

    def _chances(self, winners: Sequence[Winner]) -> list[float]:
        """The probability of trust in each gap between these winners, which are sorted by rank; the gap below all of
        them comes first."""
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
        """Estimate the share of all winners that were trusted and have not been measured; see `Policy.missed`.

        A winner that was measured although it could have been trusted with probability t stands for t / (1 - t) trusted
        winners. Trusted winners that were measured later are known and are subtracted. The upper end assumes that
        trusted, unmeasured candidates win no more often than the others that could have been trusted: those that were
        drawn to be measured, and the most promising ones, which were measured later.
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
    """The upper end of the 95 % interval for the number of winners among `others` candidates, given that `won` of
    `tried` candidates won and that those tried are a random sample of all.

    >>> _most(tried=37, won=0, others=2), _most(tried=100, won=0, others=100), _most(tried=5, won=1, others=0)
    (1, 5, 0)
    """

    def is_unlikely(count: int) -> bool:
        return _drawn_at_most(won, tried, won + count, tried + others) < _TAIL

    return bisect.bisect_left(range(1, others + 1), True, key=is_unlikely)


def _fewest(seen: int, odds: float) -> int:
    """The lower end of the 95 % interval for the number of unseen winners, given that `seen` winners were seen and that
    the odds of a winner being unseen are `odds`.

    >>> _fewest(seen=5, odds=0.3), _fewest(seen=30, odds=2.0), _fewest(seen=400, odds=9.0)
    (0, 36, 3237)
    """

    def is_likely(unseen: int) -> bool:
        return 1 - _at_most(seen - 1, seen + unseen, odds) >= _TAIL

    return bisect.bisect_left(range(math.ceil(seen * odds) + 1), True, key=is_likely)


def _at_most(k: int, n: int, odds: float) -> float:
    """P(X <= k), X ~ Binomial(n, 1 / (1 + odds))."""
    log_odds, log_whole = math.log(odds), n * math.log1p(odds)
    return math.fsum(math.exp(_log_ways(n, i) + (n - i) * log_odds - log_whole) for i in range(k + 1))


def _drawn_at_most(k: int, draws: int, winners: int, total: int) -> float:
    """P(X <= k), X the number of winners among `draws` draws without replacement from `total` that hold `winners`.

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
