"""`presage forecast PROBLEM KERNEL --device h200`."""

from __future__ import annotations

import argparse
import os
import random
from typing import Any

from presage.cli import terminal
from presage.core import scale
from presage.core.forecast import Forecast
from presage.forecasters import registry
from presage.forecasters.base import Prediction
from presage.forecasters.from_names import Asked, ask
from presage.policies import registry as policies
from presage.policies.base import Standing

_BAR = 40


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("problem", help="a problem of the catalogue, or of the recording")
    parser.add_argument(
        "kernel", help="a kernel file, or one of the problem's own by name; PATH@NAME=VALUE,… sets tunables"
    )
    parser.add_argument("--anchor", metavar="KERNEL", help="what the speedup is relative to (default: the seed kernel)")
    parser.add_argument(
        "--device", default="h200", metavar="GPU",
        help="a GPU (h200, rtx4090), recorded:NAME or recorded:FILE.parquet, or cpu (default: h200)",
    )  # fmt: skip
    parser.add_argument(
        "--forecaster", default="learned", metavar="NAME",
        help=f"one of {', '.join(registry.names())}, or blend:A,B (default: learned)",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    asked = ask(arguments.problem, [arguments.kernel], arguments.anchor, arguments.device)
    forecaster = registry.get(arguments.forecaster, asked.recording)
    try:
        (prediction,) = asked.forecast(forecaster)
    finally:
        forecaster.close()
    decision = _decision(prediction)
    if arguments.json:
        terminal.print_json(_document(asked, arguments.forecaster, prediction, decision))
    else:
        _print(asked, arguments.forecaster, prediction, decision)
    return 0


def _decision(prediction: Prediction) -> tuple[str, str]:
    """What to do, and why; or `broken`, where there is nothing to forecast."""
    if prediction.why_broken:
        return "broken", prediction.why_broken
    standing = Standing(best=0.0, measured=0, left=None)
    (decision,) = policies.get("confident").decide([prediction.forecast], standing, random.Random(0))
    return str(decision.action), decision.reason


def _document(asked: Asked, forecaster: str, prediction: Prediction, decision: tuple[str, str]) -> dict[str, Any]:
    kernels = {"kernel": asked.candidates[0].kernel, "anchor": asked.task.anchor.kernel}
    return {
        "problem": asked.task.problem.name,
        **{
            role: {"name": kernel.name, "hash": kernel.hash, "language": kernel.language}
            for role, kernel in kernels.items()
        },
        "device": asked.device,
        "forecaster": forecaster,
        "forecast": prediction.forecast and _numbers(prediction.forecast),
        "decision": dict(zip(("action", "reason"), decision, strict=True)),
        "notes": [*asked.notes, *prediction.notes],
    }


def _numbers(forecast: Forecast) -> dict[str, Any]:
    return {
        "p_fail": forecast.p_fail,
        "p_faster": forecast.exceeds(1.0),
        "speedup": {name: 2 ** forecast.quantile(q) for name, q in (("low", 0.05), ("median", 0.5), ("high", 0.95))},
        "mean_log2": forecast.mean(),
        "confidence": forecast.confidence(),
        "probabilities": dict(zip(scale.KEYS, forecast.bin_probabilities().tolist(), strict=True)),
    }


def _print(asked: Asked, forecaster: str, prediction: Prediction, decision: tuple[str, str]) -> None:
    kernel, anchor = (os.path.basename(k.name) for k in (asked.candidates[0].kernel, asked.task.anchor.kernel))
    print(f"{asked.task.problem.name}: {kernel} against {anchor}, on {asked.device}, by {forecaster}\n")
    if prediction.forecast is not None and prediction.forecast.p_fail < 1:
        _print_forecast(prediction.forecast)
    action, reason = decision
    print(f"{'Will fail' if action == 'broken' else action.capitalize()}: {reason}.")
    for note in (*asked.notes, *prediction.notes):
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
