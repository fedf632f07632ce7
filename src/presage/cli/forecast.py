"""`presage forecast PROBLEM KERNEL --target h200`."""

from __future__ import annotations

import argparse
import os
import random
from typing import Any

from presage.cli import documents, terminal
from presage.core import scale
from presage.core.forecast import Forecast
from presage.forecasters import registry
from presage.forecasters.base import Prediction
from presage.forecasters.from_names import Asked, ask
from presage.policies import registry as policies
from presage.policies.base import Standing

_BAR = 40


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("problem", help="the name of a problem, as 'presage problems' or the recording lists it")
    parser.add_argument(
        "kernel",
        help="a kernel file, or the name of one of the problem's own kernels; PATH@NAME=VALUE,… sets tunables",
    )
    parser.add_argument(
        "--anchor", metavar="KERNEL", help="the kernel that the speedup is relative to (default: the seed kernel)"
    )
    terminal.add_target(
        parser, "the hardware to forecast for: a GPU (h200, rtx4090), cpu, recorded:NAME or recorded:FILE.parquet"
    )
    parser.add_argument(
        "--forecaster", default="learned", metavar="NAME",
        help=f"one of {', '.join(registry.names())}, or blend:A,B (default: learned); 'presage plugins' explains them",
    )  # fmt: skip
    terminal.add_fail(parser, "the kernel cannot work: it does not compile, or cannot be launched")


def run(arguments: argparse.Namespace) -> int:
    asked = ask(arguments.problem, [arguments.kernel], arguments.anchor, arguments.target)
    (prediction,) = asked.forecast(arguments.forecaster)
    decision = _decision(prediction)
    if arguments.json:
        documents.write("forecast", _document(asked, arguments.forecaster, prediction, decision))
    else:
        _print(asked, arguments.forecaster, prediction, decision)
    return int(arguments.fail and decision[0] == "broken")


def _decision(prediction: Prediction) -> tuple[str, str]:
    """What to do, and why; or `broken`, where there is nothing to forecast."""
    if prediction.why_broken:
        return "broken", prediction.why_broken
    standing = Standing(best=0.0, measured=0, left=None)
    (decision,) = policies.get("confident").decide([prediction.forecast], standing, random.Random(0))
    return str(decision.action), decision.reason


def _document(asked: Asked, forecaster: str, prediction: Prediction, decision: tuple[str, str]) -> dict[str, Any]:
    return {
        "problem": asked.task.problem.name,
        "target": asked.device,
        "forecaster": forecaster,
        "anchor": documents.kernel(asked.task.anchor.kernel),
        "forecasts": [
            {
                "kernel": documents.kernel(asked.candidates[0].kernel),
                "forecast": prediction.forecast and documents.forecast(prediction.forecast),
                "decision": dict(zip(("action", "reason"), decision, strict=True)),
                "notes": list(prediction.notes),
            }
        ],
    }


def _print(asked: Asked, forecaster: str, prediction: Prediction, decision: tuple[str, str]) -> None:
    kernel, anchor = (os.path.basename(k.name) for k in (asked.candidates[0].kernel, asked.task.anchor.kernel))
    print(f"{asked.task.problem.name}: {kernel} against {anchor}, on {asked.device}, by {forecaster}\n")
    if prediction.forecast is not None and prediction.forecast.p_fail < 1:
        _print_forecast(prediction.forecast)
    action, reason = decision
    print(f"{'Will fail' if action == 'broken' else action.capitalize()}: {reason}.")
    for note in prediction.notes:
        print(f"Note: {note}.")


def _print_forecast(forecast: Forecast) -> None:
    low, median, high = (2 ** forecast.quantile(q) for q in (0.05, 0.5, 0.95))
    rows = [
        [
            "speedup" if forecast.p_fail < 0.5 else "speedup, if it works",
            f"{median:.3g}x ({low:.3g} to {high:.3g}, 90 %)",
        ],
        ["faster than the anchor", f"{forecast.exceeds(1.0):.0%}"],
        ["fails", f"{forecast.p_fail:.0%}"],
    ]
    print(terminal.table(rows, ["", ""]).strip("\n"))
    print()
    for label, p in zip(scale.labels(), forecast.bin_probabilities(), strict=True):
        print(f"  {label:20} {p:4.0%} {'#' * round(_BAR * p)}".rstrip())
    print()
