"""`presage forecast [--problem] PROBLEM KERNEL… --target h200`: forecast kernels without running them on a device."""

from __future__ import annotations

import argparse
import os
import random
from collections.abc import Sequence
from typing import Any, NamedTuple

from presage.cli import documents, terminal
from presage.core import scale
from presage.core.forecast import Forecast
from presage.forecasters import registry
from presage.forecasters.base import Prediction
from presage.forecasters.from_names import Asked, ask
from presage.kernels.kernel import Kernel
from presage.policies import registry as policies
from presage.policies.base import Standing

_BAR = 40
_POLICY = "confident"
_MOST_NAMES = 3
"""How many kernels a note names. One more is named instead of counted."""


class Told(NamedTuple):
    """One kernel, its forecast, and the decision about it."""

    kernel: Kernel
    prediction: Prediction
    action: str
    """The policy's action, or `broken` for a kernel that cannot work."""
    reason: str

    @property
    def name(self) -> str:
        return os.path.basename(self.kernel.name)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    terminal.add_problem(parser)
    parser.add_argument(
        "kernels", nargs="+", metavar="KERNEL", help=f"{terminal.KERNELS}; several are ranked, and cost one start"
    )
    parser.add_argument(
        "--all", action="store_true", help="forecast every configuration of a kernel with tunables, not only the first"
    )
    parser.add_argument(
        "--anchor", metavar="KERNEL",
        help="the kernel that speedups are relative to (default: the seed kernel, or the problem's reference)",
    )  # fmt: skip
    terminal.add_target(
        parser, "the hardware to forecast for: a GPU (h200, rtx4090), cpu, recorded:NAME or recorded:FILE.parquet",
        default=None, but=", or cpu for C and NumPy kernels",
    )  # fmt: skip
    parser.add_argument(
        "--forecaster", default="learned", metavar="NAME",
        help=f"one of {', '.join(registry.names())}, or blend:A,B (default: learned); 'presage plugins' explains them",
    )  # fmt: skip
    parser.add_argument(
        "--policy", default=_POLICY, metavar="NAME",
        help="what decides which are worth a measurement: topk:k=3 names three (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--rehearse", action="store_true",
        help="run the kernels on the CPU first, on small inputs, to see whether they compute what they should",
    )  # fmt: skip
    terminal.add_fail(parser, "a kernel cannot work: it does not compile, or cannot be launched")


def run(arguments: argparse.Namespace) -> int:
    problem, kernels = terminal.problem_and_kernels(arguments, "forecast")
    asked = ask(problem, kernels, arguments.anchor, arguments.target, arguments.all, arguments.rehearse)
    predictions = asked.forecast(arguments.forecaster)
    told = decided([candidate.kernel for candidate in asked.candidates], predictions, arguments.policy)
    if arguments.json:
        documents.write("forecast", document(asked, arguments.forecaster, told))
    elif len(told) == 1:
        _print(asked, arguments.forecaster, told[0])
    else:
        _print_ranking(asked, arguments.forecaster, told)
    return int(arguments.fail and any(each.action == "broken" for each in told))


def decided(kernels: Sequence[Kernel], predictions: Sequence[Prediction], policy: str) -> list[Told]:
    """Return each kernel with the policy's decision. The policy gets the forecasts of all working kernels at once."""
    working = [prediction.forecast for prediction in predictions if not prediction.why_broken]
    standing = Standing(best=0.0, measured=0, left=None)
    decisions = iter(policies.get(policy).decide(working, standing, random.Random(0)))
    told = []
    for kernel, prediction in zip(kernels, predictions, strict=True):
        if prediction.why_broken:
            told.append(Told(kernel, prediction, "broken", prediction.why_broken))
        else:
            decision = next(decisions)
            told.append(Told(kernel, prediction, str(decision.action), decision.reason))
    return told


def document(asked: Asked, forecaster: str, told: Sequence[Told]) -> dict[str, Any]:
    return {
        "problem": asked.task.problem.name,
        "target": asked.device,
        "forecaster": forecaster,
        "anchor": documents.kernel(asked.task.anchor.kernel),
        "forecasts": [
            {
                "kernel": documents.kernel(each.kernel),
                **_numbers(each.prediction),
                "forecast": each.prediction.forecast and documents.forecast(each.prediction.forecast),
                "decision": {"action": each.action, "reason": each.reason},
                "notes": list(each.prediction.notes),
            }
            for each in told
        ],
    }


def _numbers(prediction: Prediction) -> dict[str, Any]:
    """Return the summary numbers for scripts. A kernel that cannot work has p_fail 1."""
    found = prediction.forecast
    if found is None:
        return {"mean": None, "quantiles": None, "p_fail": 1.0 if prediction.why_broken else None}
    return {"mean": found.mean(), "quantiles": documents.quantiles(found), "p_fail": found.p_fail}


def _print(asked: Asked, forecaster: str, told: Told) -> None:
    forecast = told.prediction.forecast
    print(f"{_heading(asked, told.name, forecaster)}\n")
    if forecast is not None and forecast.p_fail < 1:
        _print_forecast(forecast)
    print(f"{'Will fail' if told.action == 'broken' else told.action.capitalize()}: {told.reason}.")
    for note in told.prediction.notes:
        print(f"Note: {note}.")


def _heading(asked: Asked, what: str, forecaster: str) -> str:
    anchor = os.path.basename(asked.task.anchor.kernel.name)
    return f"{asked.task.problem.name}: {what} against {anchor}, on {asked.device}, by {forecaster}"


def _print_forecast(forecast: Forecast) -> None:
    what = "speedup" if forecast.p_fail < 0.5 else "speedup, if it works"
    rows = [
        [what, f"{_middle(forecast)} ({_ends(forecast)}, 90 %)"],
        ["faster than the anchor", f"{forecast.exceeds(1.0):.0%}"],
        ["fails", f"{forecast.p_fail:.0%}"],
    ]
    print(terminal.table(rows, ["", ""]).strip("\n"))
    print()
    for label, p in zip(scale.labels(), forecast.bin_probabilities(), strict=True):
        print(f"  {label:20} {p:4.0%} {'#' * round(_BAR * p)}".rstrip())
    print()


def _print_ranking(asked: Asked, forecaster: str, told: Sequence[Told]) -> None:
    """Print all kernels in descending order of expected speedup; a failure counts as a speedup of 0."""
    print(f"{_heading(asked, f'{len(told)} kernels', forecaster)}\n")
    ranked = sorted(told, key=lambda each: _expected(each.prediction.forecast), reverse=True)
    rows = [[str(place), each.name, *_cells(each)] for place, each in enumerate(ranked, start=1)]
    print(terminal.table(rows, ["", "kernel", "speedup", "90 %", "faster", "fails", "decision"]))
    of_all = [note for note in told[0].prediction.notes if all(note in each.prediction.notes for each in told)]
    said: dict[str, list[str]] = {note: [] for note in of_all}
    for each in ranked:
        for note in (f"will fail: {each.reason}",) if each.action == "broken" else each.prediction.notes:
            if note not in of_all:
                said.setdefault(note, []).append(each.name)
    print("\n" * bool(said), end="")
    for note, names in said.items():
        print(f"{_listed(names)}: {note}")


def _listed(names: Sequence[str]) -> str:
    """The first few names, and how many others there are. None stands for all kernels."""
    if len(names) > _MOST_NAMES + 1:
        names = [*names[:_MOST_NAMES], f"and {len(names) - _MOST_NAMES} others"]
    return ", ".join(names) or "all"


def _expected(forecast: Forecast | None) -> float:
    return -1.0 if forecast is None else (1 - forecast.p_fail) * float(2 ** forecast.mean())


def _cells(told: Told) -> list[str]:
    forecast = told.prediction.forecast
    if forecast is None:
        return ["", "", "", "100%" if told.action == "broken" else "", told.action]
    faster, fails = f"{forecast.exceeds(1.0):.0%}", f"{forecast.p_fail:.0%}"
    return [_middle(forecast), _ends(forecast), faster, fails, told.action]


def _middle(forecast: Forecast) -> str:
    return f"{2 ** forecast.quantile(0.5):.3g}x"


def _ends(forecast: Forecast) -> str:
    return f"{2 ** forecast.quantile(0.05):.3g} to {2 ** forecast.quantile(0.95):.3g}"
