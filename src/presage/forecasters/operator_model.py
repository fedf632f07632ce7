"""The time of a call of a torch operator on a GPU, and its uncertainty: boosted trees on a recording of calls.

The trees predict the octaves between a call's time and its least possible time. There are three sets of trees: for
matrix products, for convolutions, and for all other operators.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from presage.core.errors import PresageError
from presage.forecasters.trees import digest, matrix
from presage.plugins.group import MODELS
from presage.static import operator_features
from presage.static.hardware import Hardware
from presage.static.operator_features import KINDS, Row
from presage.static.trace import Trace

Floats = npt.NDArray[np.float64]

VERSION = 1
PARTS = ("time", "warm", "spread")
"""The models of a kind: octaves above the least time with a cold cache; the change with a warm cache; and the standard
deviation of the first."""
MEASURED = "measured.json"
Measured = Mapping[str, tuple[float, float]]
"""Measured calls of one GPU: log2 of the cold and of the warm nanoseconds, by the first `KEY` digits of the hash."""
KEY = 16
_REPEATED = 0.07
"""The standard deviation of a call that was measured, in octaves: repeated measurements differ by as much."""
_FAR = 1.0
"""A call gets a doubt if it is more than this many octaves outside the range of measured calls of its operator."""
_PER_OCTAVE = 0.4
"""Octaves of standard deviation, added in quadrature, for each octave outside the measured range."""
_SMALL = 12.0
"""log2 nanoseconds. Calls whose least time is below this mostly consist of their launch."""


@dataclass(frozen=True)
class OperatorCost:
    """The time of one call. Times are log2 nanoseconds."""

    cold: float
    """The median with a cold cache."""
    warm: float
    """The median directly after the same call."""
    deviation: float
    """The standard deviation of `cold` and of `warm`."""
    host_ns: float
    """Nanoseconds that the host needs to queue the call."""
    doubt: str = ""
    """Why the time is uncertain; empty where enough is known."""


@dataclass(frozen=True)
class Known:
    """Statistics of the measured calls of one operator."""

    calls: int
    small: float
    """The median distance of small calls from their least time, in octaves; `large` is that of large calls."""
    large: float
    kernels: float
    host_ns: float
    least: tuple[float, float]
    """log2 of the least time of the smallest and of the largest call."""

    @classmethod
    def of(cls, distances: Sequence[float], least: Sequence[float], kernels: Sequence[float], host: float) -> Known:
        every = float(np.median(distances))
        small = [distance for distance, size in zip(distances, least, strict=True) if size < _SMALL]
        large = [distance for distance, size in zip(distances, least, strict=True) if size >= _SMALL + 0.5]
        low, high = (float(np.median(some)) if len(some) > 2 else every for some in (small, large))
        several = float(np.median(kernels)) if kernels else 1.0
        return cls(len(distances), low, high, several, host, (min(least), max(least)))

    def beyond(self, least: float) -> float:
        """The octaves by which a call lies outside the range of measured calls; 0 inside."""
        return max(0.0, self.least[0] - least, least - self.least[1])


def with_operator(row: Row, operator: str, known: Mapping[str, Known], usual: Known) -> Row:
    """The features with the operator's statistics added; `usual` stands in for an operator that was not measured."""
    found = known.get(operator)
    about = found or usual
    return row | {
        "operator_small": about.small,
        "operator_large": about.large,
        "operator_kernels": about.kernels,
        "operator_calls": math.log2(1 + found.calls) if found else 0.0,
        "beyond": found.beyond(row["least_ns"]) if found else 0.0,
    }


class KindModel:
    """The trees of one kind of operators."""

    def __init__(self, facts: Mapping[str, Any], boosters: Mapping[str, Any]) -> None:
        self.facts, self._boosters = facts, boosters
        self.names: list[str] = facts["names"]

    def answer(self, rows: Sequence[Row]) -> tuple[Floats, Floats, Floats]:
        """For each row: octaves above the least time, the change by a warm cache in octaves (at most 0), and the
        standard deviation in octaves."""
        table = matrix(rows, self.names)
        time, warm, spread = (np.asarray(self._boosters[part].predict(table, num_threads=1)) for part in PARTS)
        return time, np.minimum(warm, 0.0), self.facts.get("stretch", 1.0) * np.exp2(spread)


class OperatorModel:
    """Predicts the cost of calls with trees from a folder. A call of the training data has its measured time."""

    def __init__(
        self, facts: Mapping[str, Any], boosters: Mapping[str, Mapping[str, Any]], measured: Mapping[str, Measured]
    ) -> None:
        self.facts, self.measured = facts, measured
        self.kinds = {kind: KindModel(facts["kinds"][kind], boosters[kind]) for kind in facts["kinds"]}
        self.known = {name: Known(**each) for name, each in facts["operators"].items()}
        self.usual = Known(**facts["usual"])
        self.levels: list[float] = facts["levels"]
        self.residuals: list[float] = facts["residuals"]
        """Quantiles of the errors of calls, in units of their deviation."""
        self.shared: float = facts["shared"]
        """The correlation of the errors of two calls in one module."""
        self.alike: float = facts["alike"]
        """The correlation of the errors of two calls of the same operator in one module."""

    @classmethod
    def load(cls, folder: Path | None = None) -> OperatorModel:
        """Read a model from a folder; by default, the installed one, the entry point `operators` of `presage.models`.
        Raises PresageError."""
        import lightgbm

        folder = folder or Path(MODELS.load("operators"))
        try:
            facts = json.loads((folder / "operators.json").read_text())
            if facts["version"] != VERSION:
                raise PresageError(
                    f"{folder} holds a model of version {facts['version']}, not {VERSION}; train it again"
                )
            boosters: dict[str, dict[str, Any]] = {}
            for kind in facts["kinds"]:
                texts = {part: (folder / f"{kind}_{part}.txt").read_text() for part in PARTS}
                for part, text in texts.items():
                    if digest(text) != facts["kinds"][kind]["digests"][part]:
                        raise ValueError(f"{kind}_{part}.txt is not the file that operators.json speaks of")
                boosters[kind] = {part: lightgbm.Booster(model_str=text) for part, text in texts.items()}
            text = (folder / MEASURED).read_text()
            if digest(text) != facts["measured"]:
                raise ValueError(f"{MEASURED} is not the file that operators.json speaks of")
            return cls(facts, boosters, json.loads(text))
        except FileNotFoundError as error:
            raise PresageError(
                f"there is no model of operators in {folder} ({Path(error.filename).name} is missing);"
                " 'presage train operators' makes one from a recording"
            ) from error
        except (OSError, ValueError, KeyError, TypeError, lightgbm.basic.LightGBMError) as error:
            raise PresageError(
                f"the model in {folder} cannot be read: {error}; 'presage train operators' makes one"
            ) from error

    def costs(self, calls: Sequence[Trace], hardware: Hardware) -> list[OperatorCost]:
        """The cost of each call. calls: traces with one operator each, as `operator_calls` makes them."""
        found: dict[int, OperatorCost] = {}
        for kind in KINDS:
            chosen = [at for at, call in enumerate(calls) if operator_features.kind_of(call) == kind]
            if chosen:
                found |= zip(chosen, self._of_kind(kind, [calls[at] for at in chosen], hardware), strict=True)
        return [found[at] for at in range(len(calls))]

    def _of_kind(self, kind: str, calls: Sequence[Trace], hardware: Hardware) -> list[OperatorCost]:
        names = [operator_features.family(call) for call in calls]
        rows = [operator_features.features(call, hardware)[0] for call in calls]
        told = [with_operator(row, name, self.known, self.usual) for row, name in zip(rows, names, strict=True)]
        time, warm, spread = self.kinds[kind].answer(told)
        measured = self.measured.get(hardware.name, {})
        costs = []
        for at, (row, name) in enumerate(zip(told, names, strict=True)):
            known = self.known.get(name)
            host = (known or self.usual).host_ns
            if (same := measured.get(calls[at].hash[:KEY])) is not None:
                costs.append(OperatorCost(*same, _REPEATED, host))
                continue
            cold = row["least_ns"] + float(time[at])
            deviation = math.hypot(float(spread[at]), _PER_OCTAVE * row["beyond"])
            if known is None:
                deviation = max(deviation, float(self.facts["unseen"]))
            doubt = _doubt(name, known, row["beyond"])
            costs.append(OperatorCost(cold, cold + float(warm[at]), deviation, host, doubt))
        return costs


def _doubt(name: str, known: Known | None, beyond: float) -> str:
    if known is None:
        return f"no call of {name} was ever measured"
    return f"{name} was measured at sizes {beyond:.0f} octaves away only" if beyond > _FAR else ""
