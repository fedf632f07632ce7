"""The peers of a replay: other methods that search a tuning space. Each sees only the times that it has measured."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
KERNEL_TUNER = (
    "genetic_algorithm",
    "simulated_annealing",
    "greedy_ils",
    "diff_evo",
    "bayes_opt",
    "adaptive_tabu_greywolf",
)
BATCH = 5


@dataclass(frozen=True)
class Table:
    """A tuning space for a peer: its configurations, and the times, which the peer may look up one by one."""

    name: str
    values: list[dict[str, Any]]
    log2_times: Floats
    """log2 of each configuration's time; infinite for those that fail."""
    conditions: list[str]
    """The constraints on combinations of tunables."""
    kept: Path
    """The folder for files that a peer needs."""

    @cached_property
    def levels(self) -> dict[str, list[Any]]:
        names = self.values[0]
        return {name: sorted({values[name] for values in self.values}) for name in names}

    @cached_property
    def features(self) -> Floats:
        return np.array([[float(value) for value in values.values()] for values in self.values])


@dataclass(frozen=True)
class Peer:
    search: Callable[[Table, int, int], list[int]]
    """Takes a table, a seed and a budget. Returns the indices of the configurations in the order of measurement."""
    plans: bool = False
    """Whether the method plans for its budget. It is then run once for each budget."""
    needs: str = ""
    """The package that the method needs."""


def by_chance(table: Table, seed: int, budget: int) -> list[int]:
    return random.Random(seed).sample(range(len(table.values)), budget)


def classification(table: Table, seed: int, budget: int) -> list[int]:
    """Likelihood-free: train a classifier of the best 15 % of the measured times, and measure the likeliest next."""
    import lightgbm

    features, rng = table.features, np.random.default_rng(seed)
    order = rng.permutation(len(features))[: max(BATCH, budget // 5)].tolist()
    while len(order) < budget:
        times = table.log2_times[order]
        best = times <= np.quantile(np.where(np.isinf(times), 1e9, times), 0.15)
        data = lightgbm.Dataset(features[order], best.astype(float), params={"min_data_in_bin": 1, "verbosity": -1})
        settings = {"objective": "binary", "min_data_in_leaf": 2, "num_leaves": 8, "learning_rate": 0.1}
        fixed = {"num_threads": 1, "verbosity": -1, "seed": seed, "deterministic": True, "force_row_wise": True}
        likely = lightgbm.train({**settings, **fixed}, data, num_boost_round=50).predict(features)
        likely = likely + 1e-9 * rng.random(len(likely))
        likely[order] = -1
        order += np.argsort(-likely)[: min(BATCH, budget - len(order))].tolist()
    return order


def forest(table: Table, seed: int, budget: int) -> list[int]:
    """A random forest on log time. The spread of its trees gives the expected improvement."""
    import lightgbm
    from scipy.special import ndtr

    features, rng = table.features, np.random.default_rng(seed)
    order = rng.permutation(len(features))[:10].tolist()
    while len(order) < budget:
        times = table.log2_times[order]
        worked = np.isfinite(times)
        y = np.where(worked, times, times[worked].max(initial=0.0))
        data = lightgbm.Dataset(features[order], y, params={"min_data_in_bin": 1, "verbosity": -1})
        grown = {"objective": "regression", "boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.63}
        shape = {"feature_fraction_bynode": 0.7, "min_data_in_leaf": 1, "num_leaves": 64}
        fixed = {"num_threads": 1, "verbosity": -1, "seed": seed, "deterministic": True, "force_row_wise": True}
        model = lightgbm.train({**grown, **shape, **fixed}, data, num_boost_round=30)
        leaves = model.predict(features, pred_leaf=True).astype(np.intp)
        said = [
            [model.get_leaf_output(tree, leaf) for leaf in range(top + 1)] for tree, top in enumerate(leaves.max(0))
        ]
        each = np.array([np.array(values)[leaves[:, tree]] for tree, values in enumerate(said)])
        mean, deviation = each.mean(axis=0), each.std(axis=0) + 1e-6
        u = (y.min() - mean) / deviation
        gain = deviation * (u * ndtr(u) + np.exp(-0.5 * u * u) / math.sqrt(2 * math.pi))
        gain = gain + 1e-12 * rng.random(len(gain))
        gain[order] = -1
        order += np.argsort(-gain)[: min(BATCH, budget - len(order))].tolist()
    return order


def tree_parzen(table: Table, seed: int, budget: int) -> list[int]:
    """Optuna's TPE with categorical tunables. A trial that violates a constraint or repeats another costs no budget."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    place = {tuple(values.values()): index for index, values in enumerate(table.values)}
    levels = {name: optuna.distributions.CategoricalDistribution(each) for name, each in table.levels.items()}
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    worst = 2.0 * float(table.log2_times[np.isfinite(table.log2_times)].max())
    order: dict[int, None] = {}
    for _ in range(20 * budget):
        trial = study.ask(levels)
        index = place.get(tuple(trial.params[name] for name in levels))
        time = math.inf if index is None else float(table.log2_times[index])
        study.tell(trial, time if math.isfinite(time) else worst)
        if index is not None:
            order[index] = None
        if len(order) == budget:
            break
    return list(order)


def kernel_tuner(strategy: str, table: Table, seed: int, budget: int) -> list[int]:
    """Kernel Tuner in simulation mode, on a cache file of the space."""
    import kernel_tuner as tuner

    cache_file = _cache(table)
    document = json.loads(cache_file.read_text())
    random.seed(seed)
    np.random.seed(seed)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        results, _ = tuner.tune_kernel(
            document["kernel_name"],
            "",
            document["problem_size"],
            [],
            document["tune_params"],
            restrictions=list(table.conditions),
            cache=str(cache_file),
            simulation_mode=True,
            strategy=strategy,
            strategy_options={"max_fevals": budget},
            lang="CUDA",
        )
    place = {tuple(values.values()): index for index, values in enumerate(table.values)}
    names = list(table.values[0])
    return list(dict.fromkeys(place[tuple(result[name] for name in names)] for result in results))[:budget]


def _cache(table: Table) -> Path:
    """Write the space as a Kernel Tuner cache file, unless it exists, and return its path."""
    file = table.kept / f"{table.name}.kernel_tuner.json"
    if not file.exists():
        entries = {}
        for values, time in zip(table.values, table.log2_times.tolist(), strict=True):
            ms = 2**time / 1e6 if math.isfinite(time) else "RuntimeFailedConfig"
            costs = {"compile_time": 0, "verification_time": 0, "benchmark_time": 0, "strategy_time": 0}
            rest = {"time": ms, "framework_time": 0, "timestamp": "2025-01-01 00:00:00+00:00", **costs}
            entries[",".join(map(str, values.values()))] = {**values, **rest}
        document = {
            "device_name": table.name,
            "kernel_name": table.name.partition("__")[0],
            "problem_size": [1],
            "tune_params_keys": list(table.levels),
            "tune_params": table.levels,
            "objective": "time",
            "cache": entries,
        }
        file.write_text(json.dumps(document))
    return file


@cache
def _peers() -> dict[str, Peer]:
    tuner = {name: Peer(partial(kernel_tuner, name), True, "kernel_tuner") for name in KERNEL_TUNER}
    return {
        "random": Peer(by_chance),
        "lfc": Peer(classification, plans=True, needs="lightgbm"),
        "forest": Peer(forest, needs="lightgbm"),
        "tpe": Peer(tree_parzen, needs="optuna"),
        **tuner,
    }


NAMES = tuple(_peers())


def find(name: str) -> Peer:
    return _peers()[name]


def missing(name: str) -> str:
    """Return the package that a method needs and that is not installed, or an empty string."""
    needs = _peers()[name].needs if name in _peers() else ""
    return needs if needs and importlib.util.find_spec(needs) is None else ""
