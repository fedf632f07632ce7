"""Kernel Tuner: write its cache files and T4 files from a recording, and provide a strategy for `tune_kernel`.

`presage corpus import` reads both kinds of file (corpus/importing.py).
"""

from __future__ import annotations

import contextlib
import importlib
import json
import random
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from presage.core.errors import PresageError
from presage.core.files import write_whole
from presage.devices.recording import Recording, Row
from presage.devices.status import Status
from presage.forecasters.base import Candidate, Measured, Task
from presage.forecasters.surrogate import OPENING, SurrogateForecaster, opening
from presage.kernels.header import Header, Value
from presage.kernels.kernel import Kernel
from presage.problems.base import Case, Problem, Tolerance
from presage.problems.sampler import Sampler

_MS = 1e6
_ERRORS = {Status.COMPILE_ERROR: "CompilationFailedConfig"}
_OTHER_ERROR = "RuntimeFailedConfig"
_INVALIDITY = {
    Status.OK: "correct",
    Status.COMPILE_ERROR: "compile",
    Status.TIMEOUT: "timeout",
    Status.WRONG_RESULT: "correctness",
}
_TIMES = ("compile_time", "verification_time", "benchmark_time", "strategy_time", "framework_time")


# -- files ------------------------------------------------------------------------------------------------------------


def write_cache(recording: Recording, to: Path, problem: str | None = None, family: str | None = None) -> int:
    """Write the kernels of one family as a cache file for `tune_kernel(cache=…)`, also in simulation mode.

    Returns their number. Raises PresageError if the recording has several problems or families and none is named."""
    rows = _family(recording, problem, family)
    head = {
        "device_name": str(recording.facts.get("hardware") or recording.name),
        "kernel_name": rows[0].problem,
        "problem_size": _sizes(rows),
        "tune_params_keys": list(rows[0].values),
        "tune_params": _choices(rows),
        "objective": "time",
    }
    lines = [f"{json.dumps(','.join(map(str, row.values.values())))}: {json.dumps(_cached(row))}" for row in rows]
    text = json.dumps(head)[:-1] + ', "cache": {\n' + ",\n".join(lines) + "}\n}"  # one line each, like Kernel Tuner
    _write(to, text)
    return len(rows)


def write_t4(recording: Recording, to: Path, problem: str | None = None, family: str | None = None) -> int:
    """Write the kernels of one family as a T4 file, the results format shared by auto-tuners. Returns their number."""
    rows = _family(recording, problem, family)
    document = {
        "schema_version": "1.0.0",
        "metadata": {"timeunit": "milliseconds", "hardware": str(recording.facts.get("hardware") or recording.name)},
        "results": [_result(row) for row in rows],
    }
    _write(to, json.dumps(document, indent=1))
    return len(rows)


def _write(to: Path, text: str) -> None:
    try:
        write_whole(to, text)
    except OSError as error:
        raise PresageError(f"cannot write {to}: {error.strerror}") from error


def _family(recording: Recording, problem: str | None, family: str | None) -> list[Row]:
    """The rows of one family that have the same tunables as its first row. Raises PresageError."""
    problems = [problem] if problem else list(recording.counts)
    if len(problems) > 1:
        raise PresageError(f"{recording.name} has {len(problems)} problems; name one of them with --problem")
    rows = [row for row in recording.rows(problems[0], reports=False) if row.values]
    families = sorted({row.family for row in rows})
    if not families:
        raise PresageError(f"{recording.name} has no kernel of {problems[0]} with tunables")
    if family is None and len(families) > 1:
        raise PresageError(f"{problems[0]} has the families {', '.join(families)}; name one of them with --family")
    chosen = [row for row in rows if row.family == (family or families[0])]
    if not chosen:
        raise PresageError(f"{problems[0]} has no family '{family}'; it has {', '.join(families)}")
    return [row for row in chosen if row.values.keys() == chosen[0].values.keys()]


def _choices(rows: Sequence[Row]) -> dict[str, list[Value]]:
    return {name: list(dict.fromkeys(row.values[name] for row in rows)) for name in rows[0].values}


def _sizes(rows: Sequence[Row]) -> list[int]:
    """The sizes in the case's name, if it consists of sizes; else [1]."""
    case = next((row.cases[0].case for row in rows if row.cases), "")
    return [int(size) for size in case.split("x")] if re.fullmatch(r"\d+(x\d+)*", case) else [1]


def _time_ms(row: Row) -> float:
    objective = row.facts.get("objective_ns")
    return float(row.total_ns if objective is None else objective) / _MS


def _samples_ms(row: Row) -> list[float]:
    """The samples of a single case. Samples of several cases do not belong together, so there the geometric mean of the
    medians is used."""
    return [time / _MS for time in row.cases[0].samples_ns] if len(row.cases) == 1 else [row.total_ns / _MS]


def _cached(row: Row) -> dict[str, Any]:
    known = {**row.values, **dict.fromkeys(_TIMES, 0.0)}
    if row.status is not Status.OK:
        return {**known, "time": _ERRORS.get(row.status, _OTHER_ERROR)}
    return {**known, "time": _time_ms(row), "times": _samples_ms(row)}


def _result(row: Row) -> dict[str, Any]:
    ok = row.status is Status.OK
    return {
        "configuration": dict(row.values),
        "times": {"compilation": 0.0, "runtimes": _samples_ms(row) if ok else []},
        "invalidity": _INVALIDITY.get(row.status, "runtime"),
        "correctness": int(row.status is not Status.WRONG_RESULT),
        "measurements": [{"name": "time", "value": _time_ms(row), "unit": "ms"}] if ok else [],
        "objectives": ["time"],
    }


# -- the strategy -----------------------------------------------------------------------------------------------------

_CASE = "as tuned"
_NO_COST = sys.float_info.max / 2
"""The limit of a cost. Kernel Tuner gives a greater one for a configuration that failed."""


class SurrogateStrategy:
    """The `surrogate` forecaster as a strategy: `kernel_tuner.tune_kernel(…, strategy=SurrogateStrategy())`.

    It measures a few configurations that usually perform well, then always the one with the highest expected
    improvement, until the budget of `strategy_options` (`max_fevals`, `time_limit`) is spent."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.costfunc_kwargs = {"scaling": False, "snap": False}

    def tune(self, searchspace: Any, runner: Any, tuning_options: Any) -> list[dict[str, Any]]:
        """The interface that `tune_kernel` calls."""
        util = importlib.import_module("kernel_tuner.util")  # installed, because it has called this method
        common = importlib.import_module("kernel_tuner.strategies.common")
        cost = common.CostFunc(searchspace, tuning_options, runner, **self.costfunc_kwargs)
        with contextlib.suppress(util.StopCriterionReached):  # the usual end: the budget is spent
            self(cost, searchspace)
        results: list[dict[str, Any]] = cost.results
        return results

    def __call__(self, cost: Any, searchspace: Any) -> tuple[tuple[Any, ...], float]:
        """Measure until the budget is spent; return the best configuration and its cost. `OptAlgWrapper` calls this."""
        names = list(searchspace.tune_params)
        configurations = {_label(names, each): tuple(each) for each in searchspace.list}
        left = {label: Candidate(_kernel(label, names, each)) for label, each in configurations.items()}
        kernels = [each.kernel for each in left.values()]
        first = [kernels[at].hash for at in opening(kernels, OPENING, random.Random(self.seed))]
        forecaster, problem = SurrogateForecaster(), _Tuned()
        measured: list[Measured] = []
        anchor: Measured | None = None
        best: tuple[tuple[Any, ...], float] = ((), float("inf"))
        while left:
            if anchor is None:
                choice = next((hash for hash in first if hash in left), next(iter(left)))
            else:
                task = Task(problem, anchor, neighbours=tuple(measured), kind="gpu")
                choice = forecaster.favourites(task, left, 1)[0]
            value = float(cost(configurations[choice]))
            best = min(best, (configurations[choice], value), key=lambda each: each[1])
            found = _told(left.pop(choice).kernel, value)
            if anchor is None and found.status == "ok":
                anchor = found
            else:
                measured.append(found)
        return best


def _told(kernel: Kernel, cost: float) -> Measured:
    """The cost as a time; less is better. Kernel Tuner negates an objective to maximise, and its inverse is used."""
    if not -_NO_COST < cost < _NO_COST or cost == 0:
        return Measured(kernel, status="runtime_error")
    return Measured(kernel, times_ns={_CASE: cost if cost > 0 else -1 / cost})


def _label(names: Sequence[str], values: Sequence[Any]) -> str:
    return ",".join(f"{name}={value}" for name, value in zip(names, values, strict=True))


def _kernel(label: str, names: Sequence[str], values: Sequence[Any]) -> Kernel:
    chosen = {name: _plain(value) for name, value in zip(names, values, strict=True)}
    kernel = Kernel("", "cuda", Header(), f"tuned@{label}", chosen)
    kernel.__dict__["hash"] = label  # there is no source to hash, only the values
    return kernel


def _plain(value: Any) -> Value:
    """A NumPy value as a Python value."""
    found: Value = value.item() if hasattr(value, "item") else value
    return found


class _Tuned(Problem):
    """A stand-in for the problem that Kernel Tuner measures. Only times are known."""

    name, room, summary = "tuned", "imported", "measured by Kernel Tuner"
    inputs = outputs = checks = ()

    def __init__(self) -> None:
        self.timed = {"gpu": (Case({}),)}

    def draw_case(self, rng: random.Random) -> Case:
        raise NotImplementedError

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        raise NotImplementedError

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        raise NotImplementedError

    def tolerance(self, case: Case) -> Tolerance:
        raise NotImplementedError

    def flops(self, case: Case) -> int:
        raise NotImplementedError
