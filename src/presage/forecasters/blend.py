"""The `blend` forecaster: pools several forecasters, and learns their weights from measurements."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from presage.core.errors import PresageError
from presage.core.forecast import Forecast
from presage.forecasters.base import Candidate, Forecaster, Prediction, Task
from presage.llm.cost import Cost

Floats = npt.NDArray[np.float64]

MEMBERS = ("learned", "llm")
"""The members of plain `blend`; `blend:A,B` names others."""
_REACH = 0.125
"""Octaves on either side of a measured log2 S. A forecast is scored by its probability mass in this range."""
_DOUBT = 0.01
"""The share of every score that comes from a uniform forecast, so that one surprise does not ruin a member."""
_SPREAD = 10.0
_FORGET = 0.01
"""The share of the weights that is distributed equally after each measurement, so that members can recover."""


class BlendForecaster(Forecaster):
    """Averages several forecasters, and gives more weight to those that were right. It is the linear pool of their CDFs
    and of their p_fail. A member's weight is multiplied by the likelihood that it gave to the measurement; speed and
    failure have separate weights.

    The blend stores its members' forecasts of each kernel, and learns when the kernel appears in a task's neighbours. A
    member without a forecast has no weight in that pool, and the outcome does not change its weight.
    """

    @classmethod
    def from_text(cls, text: str, get: Callable[[str], Forecaster]) -> BlendForecaster:
        """The blend of `blend:A,B`, or of `MEMBERS`."""
        return cls({name: get(name) for name in (text.split(",") if text else MEMBERS)})

    def __init__(
        self,
        members: Mapping[str, Forecaster],
        speed: Sequence[float] | None = None,
        failure: Sequence[float] | None = None,
    ) -> None:
        """speed, failure: the initial weight of each member; by default, all equal."""
        if len(members) < 2:
            raise PresageError("a blend needs two or more forecasters; write --forecaster blend:learned,llm")
        for weights in (speed, failure):
            if weights is not None and (len(weights) != len(members) or not all(weight > 0 for weight in weights)):
                raise PresageError(f"a blend of {len(members)} needs a weight above 0 for each")
        self._members = dict(members)
        self.is_paid = any(member.is_paid for member in members.values())
        self._speed = _shares([1.0] * len(members) if speed is None else speed)
        self._failure = _shares([1.0] * len(members) if failure is None else failure)
        self._said: dict[tuple[str, str, str], list[Forecast | None]] = {}
        self._news: dict[tuple[str, str, str], list[Forecast | None] | None] = {}
        """The changes of `_said` since the last `memory`; None for an entry that was learned from and removed."""

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each member for speed, when all have a forecast."""
        return dict(zip(self._members, self._speed.tolist(), strict=True))

    def forecast(self, task: Task, candidates: Sequence[Candidate]) -> list[Prediction]:
        self._learn(task)
        until = time.monotonic() + self.seconds
        asked = []
        for member in self._members.values():
            member.seconds, member.allowance = until - time.monotonic(), self.allowance
            asked.append(member.forecast(task, candidates))
        predictions = []
        for candidate, said in zip(candidates, zip(*asked, strict=True), strict=True):
            key = _key(task, candidate)
            self._said[key] = self._news[key] = [prediction.forecast for prediction in said]
            predictions.append(self._pooled(said))
        return predictions

    def spent(self) -> Cost:
        return sum((member.spent() for member in self._members.values()), start=Cost())

    def memory(self) -> Any:
        news, self._news = self._news, {}
        said = [
            [*key, None if each is None else [f.to_json() if f else None for f in each]] for key, each in news.items()
        ]
        return {"speed": self._speed.tolist(), "failure": self._failure.tolist(), "said": said}

    def remember(self, memory: Any) -> None:
        self._speed, self._failure = np.array(memory["speed"]), np.array(memory["failure"])
        for *key, said in memory["said"]:
            self._said.pop(tuple(key), None)
            if said is not None:
                self._said[tuple(key)] = [Forecast.from_json(f) if f else None for f in said]

    def check_priced(self) -> None:
        for member in self._members.values():
            member.check_priced()

    def close(self) -> None:
        for member in self._members.values():
            member.close()

    def _learn(self, task: Task) -> None:
        """Learn from every neighbour that was forecast here, once each, the oldest first."""
        for measured in reversed(task.neighbours):
            said = self._said.pop(_key(task, measured), None)
            if said is None:
                continue
            self._news[_key(task, measured)] = None
            log2_S = task.log2_speedup(measured)
            if log2_S is not None:
                self._speed = _updated(self._speed, [None if f is None else _mass_near(f, log2_S) for f in said])
            failed = measured.status != "ok"
            self._failure = _updated(self._failure, [None if f is None else _said_of_failure(f, failed) for f in said])

    def _pooled(self, said: Sequence[Prediction]) -> Prediction:
        notes = [f"{name}: {note}" for name, p in zip(self._members, said, strict=True) for note in p.notes]
        present = [i for i, prediction in enumerate(said) if prediction.forecast is not None]
        forecasts = [forecast for prediction in said if (forecast := prediction.forecast) is not None]
        if not forecasts:
            return Prediction(None, ("no forecast: no member has one", *notes))
        speed, failure = (weights[present] / weights[present].sum() for weights in (self._speed, self._failure))
        names = [list(self._members)[i] for i in present]
        told = ", ".join(f"{name} {weight:.2f}" for name, weight in zip(names, speed, strict=True))
        return Prediction(pool(forecasts, speed, failure), (f"weights: {told}", *notes))


def _key(task: Task, candidate: Candidate) -> tuple[str, str, str]:
    return task.problem.name, task.anchor.kernel.hash, candidate.kernel.hash


def pool(
    forecasts: Sequence[Forecast], weights: npt.ArrayLike, failure_weights: npt.ArrayLike | None = None
) -> Forecast:
    """The weighted mean of the CDFs, which is exact because all are piecewise linear, and of p_fail.

    >>> halves = pool([Forecast((0.0, 1.0), (0.0, 1.0)), Forecast((1.0, 2.0), (0.0, 1.0), p_fail=0.5)], [1, 1])
    >>> halves.knots, halves.cdf, halves.p_fail
    ((0.0, 1.0, 2.0), (0.0, 0.5, 1.0), 0.25)
    """
    speed = _shares(weights)
    failure = speed if failure_weights is None else _shares(failure_weights)
    knots = np.unique(np.concatenate([forecast.knots for forecast in forecasts]))
    cdf = speed @ np.array([np.interp(knots, forecast.knots, forecast.cdf) for forecast in forecasts])
    cdf = np.maximum.accumulate(np.clip(cdf, 0.0, 1.0))
    p_fail = float(np.clip(failure @ np.array([forecast.p_fail for forecast in forecasts]), 0.0, 1.0))
    return Forecast(tuple(knots.tolist()), (0.0, *cdf[1:-1].tolist(), 1.0), p_fail)


def _shares(weights: npt.ArrayLike) -> Floats:
    w = np.asarray(weights, dtype=np.float64)
    return np.asarray(w / w.sum())


def _updated(weights: Floats, likelihoods: Sequence[float | None]) -> Floats:
    """Update by Bayes' rule the weights of the members that had a forecast; their sum stays. Then apply `_FORGET`."""
    awake = np.array([likelihood is not None for likelihood in likelihoods])
    if awake.sum() < 2:
        return weights
    new = weights.copy()
    new[awake] *= np.array([likelihood for likelihood in likelihoods if likelihood is not None])
    new[awake] *= weights[awake].sum() / new[awake].sum()
    new[awake] = (1 - _FORGET) * new[awake] + _FORGET * new[awake].mean()
    return new


def _mass_near(forecast: Forecast, log2_S: float) -> float:
    mass = forecast.cdf_at(log2_S + _REACH) - forecast.cdf_at(log2_S - _REACH)
    return (1 - _DOUBT) * mass + _DOUBT * 2 * _REACH / _SPREAD


def _said_of_failure(forecast: Forecast, failed: bool) -> float:
    said = forecast.p_fail if failed else 1 - forecast.p_fail
    return (1 - _DOUBT) * said + _DOUBT / 2
