"""Score the installed operator model on calls of problems that it has not seen.

python benchmarks/operators.py [--split validation|test_problem] [--recording NAME|FILE] [--json]
"""

from __future__ import annotations

import argparse
import json

import numpy as np

from presage.devices import operator_recording
from presage.devices.operator_recording import TimedCall
from presage.forecasters.operator_model import OperatorCost, OperatorModel
from presage.static import operator_features


def figures(timed: list[TimedCall], costs: list[OperatorCost], model: OperatorModel) -> dict[str, float]:
    """Return the errors of the forecast times in percent, and how often the 90 % interval contains the time."""
    cold, warm = (
        np.array([getattr(cost, name) for cost in costs]) - np.log2([getattr(each, f"{name}_ns") for each in timed])
        for name in ("cold", "warm")
    )
    low, high = np.interp([0.05, 0.95], model.levels, model.residuals)
    standard = -cold / np.array([cost.deviation for cost in costs])
    error = 100 * np.abs(np.exp2(cold) - 1)
    return {
        "calls": len(timed),
        "median error, %": float(np.median(error)),
        "90th percentile, %": float(np.quantile(error, 0.9)),
        "coverage of 90 %": float(np.mean((standard > low) & (standard < high))),
        "warm: median error, %": float(np.median(100 * np.abs(np.exp2(warm) - 1))),
        "sum of forecasts over sum of times": float(
            np.exp2([cost.cold for cost in costs]).sum() / np.sum([each.cold_ns for each in timed])
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--split", default="validation")
    parser.add_argument("--recording", default="h200")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    model = OperatorModel.load()
    timed = [
        each
        for each in operator_recording.read(operator_recording.find(arguments.recording))
        if each.split == arguments.split
    ]
    costs = model.costs([each.call for each in timed], timed[0].hardware)
    kinds = [operator_features.kind_of(each.call) for each in timed]
    found = {}
    for kind in ("all", *operator_features.KINDS):
        chosen = [at for at, each in enumerate(kinds) if kind in ("all", each)]
        if chosen:
            found[kind] = figures([timed[at] for at in chosen], [costs[at] for at in chosen], model)
    if arguments.json:
        print(json.dumps(found, indent=1))
        return
    for kind, values in found.items():
        print(f"{kind:12s} " + ", ".join(f"{name} {value:.4g}" for name, value in values.items()))


if __name__ == "__main__":
    main()
