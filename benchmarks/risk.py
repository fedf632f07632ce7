"""Test whether the policy `risk` keeps its bound: replay searches with known outcomes, with good and bad forecasters.

    python benchmarks/risk.py [--runs 200] [--candidates 400] [--alpha 0.05 0.1] [--forecaster good …]
                              [--promoted 0.5] [--spaces ../shared/data/autotune_spaces] [--json]

A run proposes candidates in batches of 8. If a space has tunables, half of a batch is near the best so far; the rest is
drawn from the whole space. A winner is a candidate that beats the best at the time of its decision by more than 5 %. A
winner is passed over if it was trusted. The bound is on the share of winners that are passed over. At the end, a share
of the trusted candidates may be measured, the most promising first, as a search does when nothing new is proposed
(`--promoted`). `missed` is the share of winners that are never measured. `told` is the policy's own estimate of
`missed`, from its measurements alone. `held` is how often the policy's interval contains the truth.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from presage import Action, Forecast, Standing
from presage.policies.risk import Risk

BATCH = 8
SPACES = Path(__file__).parents[2] / "shared" / "data" / "autotune_spaces"
DELTA = 0.05
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
NORMAL = np.array([-1.645, -0.674, 0.0, 0.674, 1.645])
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Space:
    """All candidates of one search, with their true speedups."""

    name: str
    truth: Floats
    """log2 S over the anchor; -inf for a candidate that fails."""
    places: npt.NDArray[np.int64] | None = None
    """The position of each candidate along each tunable; None if there are no tunables."""


def synthetic(rng: np.random.Generator, count: int) -> Space:
    """Draw a space: 70 % slow candidates, 30 % fast ones, and a random tenth of all that fails."""
    quick = rng.random(count) < 0.3
    truth = np.where(quick, rng.normal(0.3, 0.4, count), rng.normal(-1.0, 1.0, count))
    truth[rng.random(count) < 0.1] = -np.inf
    return Space("synthetic", truth)


def recorded(path: Path) -> Space:
    """Read a tuning space. The anchor's time is the median time of its configurations."""
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(path)
    described = {space["space"]: space for space in json.loads((path.parent / "spaces.json").read_text())}
    works = np.array(table["status"].to_pylist()) == "ok"
    times = np.array(table["median_ms"].to_pylist(), dtype=np.float64)
    truth = np.full(len(times), -np.inf)
    truth[works] = np.log2(np.median(times[works]) / times[works])
    tunables = described[path.stem]["tune_params"]
    places = [np.unique(np.array(table[name].to_pylist()), return_inverse=True)[1] for name in tunables]
    return Space(path.stem, truth, np.stack(places, axis=1).astype(np.int64))


# -- forecasters: each returns the centres of its forecasts and the width that it claims ------------------------------


def good(truth: Floats, rng: np.random.Generator) -> tuple[Floats, float]:
    return truth + rng.normal(0, 0.35, truth.size), 0.35


def useless(truth: Floats, rng: np.random.Generator) -> tuple[Floats, float]:
    return rng.permutation(truth), 1.0


def overconfident(truth: Floats, rng: np.random.Generator) -> tuple[Floats, float]:
    return truth + rng.normal(0, 0.7, truth.size), 0.07


def pessimistic(truth: Floats, rng: np.random.Generator) -> tuple[Floats, float]:
    return truth - 1 + rng.normal(0, 0.35, truth.size), 0.35


def optimistic(truth: Floats, rng: np.random.Generator) -> tuple[Floats, float]:
    return truth + 1 + rng.normal(0, 0.35, truth.size), 0.35


def blind_at_the_top(truth: Floats, rng: np.random.Generator) -> tuple[Floats, float]:
    """Forecast slow candidates well, but cap forecasts at the 80 % quantile: it cannot rank the fastest fifth."""
    ceiling = np.quantile(truth, 0.8)
    return np.minimum(truth, ceiling) + rng.normal(0, 0.35, truth.size), 0.35


def inverted(truth: Floats, rng: np.random.Generator) -> tuple[Floats, float]:
    return -truth, 0.35


FORECASTERS: dict[str, Callable[[Floats, np.random.Generator], tuple[Floats, float]]] = {
    each.__name__: each  # type: ignore[attr-defined]
    for each in (good, useless, overconfident, pessimistic, optimistic, blind_at_the_top, inverted)
}


def forecasts(space: Space, kind: str, rng: np.random.Generator) -> Callable[[int], Forecast]:
    works = np.isfinite(space.truth)
    imagined = np.where(works, space.truth, rng.choice(space.truth[works], space.truth.size))
    centres, width = FORECASTERS[kind](imagined, rng)
    p_fail = np.clip(np.where(works, 0.05, 0.6) + rng.normal(0, 0.1, works.size), 0, 1)
    if kind in ("useless", "inverted"):
        p_fail = rng.permutation(p_fail)
    return lambda i: Forecast.from_quantiles(LEVELS, centres[i] + width * NORMAL, float(p_fail[i]))


# -- one run ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """The result of one run."""

    winners: int
    passed_over: int
    missed: int
    """The winners passed over that were not measured at the end, either."""
    measured: int
    told: float
    """The policy's own estimate of `missed`."""
    high: float
    """The upper end of the policy's interval for the share of missed winners."""
    held: bool
    """Whether that interval contains the true share."""


def replay(policy: Risk, space: Space, kind: str, candidates: int, promoted: float, seed: int) -> Outcome:
    numbers, rng = np.random.default_rng(seed), random.Random(seed)
    predict = forecasts(space, kind, numbers)
    unseen = np.ones(space.truth.size, dtype=bool)
    best, champion, winners, measured, seen = 0.0, None, 0, 0, 0
    trusted: list[tuple[float, float, float, bool]] = []
    while seen < min(candidates, space.truth.size):
        batch = draw(space, unseen, champion, numbers)
        unseen[batch] = False
        seen += len(batch)
        standing = Standing(best, measured, None)
        predicted = [predict(i) for i in batch]
        decisions = policy.decide(predicted, standing, rng)
        for i, forecast, decision in zip(batch, predicted, decisions, strict=True):
            truth = float(space.truth[i])
            wins = truth > standing.best + math.log2(1 + DELTA)
            winners += wins
            if decision.action is Action.TRUST:
                trusted.append((forecast.mean(), standing.best, truth, wins))
                continue
            measured += 1
            policy.observe(forecast, decision, standing, truth if math.isfinite(truth) else None)
            if truth > best:
                best, champion = truth, int(i)
    trusted.sort(reverse=True)
    later = round(promoted * len(trusted))
    for _, then, truth, _ in trusted[:later]:
        policy.observe_trusted(then, truth if math.isfinite(truth) else None)
    passed_over, missed = (sum(wins for *_, wins in some) for some in (trusted, trusted[later:]))
    told = policy.missed(len(trusted) - later)
    rate = missed / winners if winners else 0.0
    estimated = (winners - missed) * told["rate"] / (1 - told["rate"])
    held = told["low"] <= rate <= told["high"]
    return Outcome(winners, passed_over, missed, measured, estimated, told["high"], held)


def draw(space: Space, unseen: npt.NDArray[np.bool_], champion: int | None, rng: np.random.Generator) -> list[int]:
    left = np.flatnonzero(unseen)
    batch: list[int] = []
    if space.places is not None and champion is not None:
        steps = np.abs(space.places[left] - space.places[champion]).sum(axis=1)
        order = np.argsort(steps + 2 * rng.random(left.size))
        batch, left = left[order[: BATCH // 2]].tolist(), left[order[BATCH // 2 :]]
    return batch + rng.choice(left, min(BATCH - len(batch), left.size), replace=False, shuffle=False).tolist()


# -- all of them ------------------------------------------------------------------------------------------------------


def study(
    spaces: list[Space] | None, kind: str, alpha: float, runs: int, candidates: int, promoted: float
) -> dict[str, float | str]:
    """Run `replay` over these spaces in turn, or over a new synthetic space for each run if there are none."""
    outcomes = []
    for run in range(runs):
        space = spaces[run % len(spaces)] if spaces else synthetic(np.random.default_rng(run), candidates)
        outcomes.append(replay(Risk(alpha, DELTA), space, kind, candidates, promoted, seed=run))
    winners, passed, missed, told = (
        sum(getattr(o, name) for o in outcomes) for name in ("winners", "passed_over", "missed", "told")
    )
    offered = sum(min(candidates, s.truth.size) for s in spaces) / len(spaces) if spaces else candidates
    low, high = wilson(passed, winners)
    return {
        "spaces": "recorded" if spaces else "synthetic",
        "forecaster": kind,
        "alpha": alpha,
        "runs": runs,
        "winners_per_run": winners / runs,
        "rate": passed / winners,
        "low": low,
        "high": high,
        "missed": missed / winners,
        "told": told / (winners - missed + told),
        "at_most": float(np.mean([o.high for o in outcomes])),
        "held": float(np.mean([o.held for o in outcomes])),
        "saved": 1 - sum(o.measured for o in outcomes) / (runs * offered),
    }


def wilson(hits: int, tries: int) -> tuple[float, float]:
    """Return the 95 % Wilson interval of a share."""
    z2 = 1.959964**2
    centre = (hits + z2 / 2) / (tries + z2)
    reach = math.sqrt(z2) / (tries + z2) * math.sqrt(hits * (tries - hits) / tries + z2 / 4)
    return max(0.0, centre - reach), centre + reach


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--candidates", type=int, default=400)
    parser.add_argument("--alpha", type=float, nargs="+", default=[0.05, 0.10])
    parser.add_argument("--forecaster", choices=FORECASTERS, nargs="+", default=list(FORECASTERS))
    parser.add_argument("--promoted", type=float, default=0.0, help="the share of trusted ones measured in the end")
    parser.add_argument("--spaces", type=Path, default=SPACES)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    tuned = [recorded(path) for path in sorted(asked.spaces.glob("*.parquet"))]
    if not asked.json:
        print("spaces     forecaster        alpha  winners  passed over [95 %]    missed  told  at most  held  saved")
    results = []
    for spaces in (None, tuned) if tuned else (None,):
        for kind in asked.forecaster:
            for alpha in asked.alpha:
                found = study(spaces, kind, alpha, asked.runs, asked.candidates, asked.promoted)
                results.append(found)
                if not asked.json:
                    print(
                        "{spaces:10} {forecaster:17} {alpha:5.2f} {winners_per_run:8.1f}"
                        "  {rate:.3f} [{low:.3f}, {high:.3f}]  {missed:.3f} {told:.3f}"
                        "  {at_most:7.2f} {held:5.2f} {saved:6.0%}".format(**found),
                        flush=True,
                    )
    if asked.json:
        print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
