"""`presage search PROBLEM`."""

from __future__ import annotations

import argparse
import importlib
import shutil
import sys
import time
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from presage.cli import terminal
from presage.search import words
from presage.search.run import RUNS, Configuration, Run, search
from presage.search.state import State
from presage.store.store import Event

_WORDS = {"device_seconds": "s of the device", "wall_seconds": "s", "dollars": "dollars"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    default = Configuration("")
    parser.add_argument("problem", metavar="PROBLEM", help="what 'presage problems' lists, a file, or a recorded name")
    parser.add_argument("--device", help="default: cuda where there is a GPU, else the recorded H200, else cpu")
    parser.add_argument("--forecaster", help="default: learned, where it is there; 'none' measures everything")
    parser.add_argument("--policy", help="default: risk, and without a forecaster always")
    parser.add_argument("--strategy", default=default.strategy, help="default: %(default)s")
    parser.add_argument("--proposer", help="default: pool on a recorded device, else knobs")
    parser.add_argument("--anchor", metavar="KERNEL", help="what speedups are relative to; default: the device's own")
    limits = parser.add_argument_group("budgets, none of which is ever exceeded")
    limits.add_argument(
        "--budget", type=_count, default=default.budget, metavar="N", help="measurements (default: %(default)s)"
    )
    limits.add_argument("--device-seconds", type=terminal.positive, metavar="S", help="seconds of the device")
    limits.add_argument("--wall", type=terminal.positive, metavar="S", help="seconds, over all processes of the run")
    limits.add_argument("--tokens", type=_count, metavar="N", help="tokens of language models")
    limits.add_argument("--dollars", type=terminal.positive, metavar="D", help="dollars, where prices are known")
    parser.add_argument(
        "--alpha", type=terminal.positive, default=default.alpha, metavar="SHARE",
        help="for risk: how many of the winners may be passed over (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--delta", type=terminal.positive, default=default.delta, metavar="SHARE",
        help="for risk: a winner is faster than the best by more than this (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--no-early-stop", dest="early_stop", action="store_false",
        help="go on although nothing left is likely to be faster",
    )  # fmt: skip
    parser.add_argument("--batch", type=_count, metavar="N", help="candidates of a step (default: as fits the policy)")
    parser.add_argument("--seed", type=int, default=default.seed, help="default: %(default)s")
    parser.add_argument(
        "--run", metavar="FOLDER", dest="folder",
        help=f"where the run lives; the same command goes on with it (default: {RUNS}/PROBLEM-DEVICE-SEED)",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    settings = {name: getattr(arguments, name) for name in Configuration.__dataclass_fields__ if name != "problem"}
    view = View()
    try:
        found = search(arguments.problem, run=arguments.folder, watch=view, **settings)
    finally:
        view.clear()
    if find_spec("presage.report.run_page"):
        importlib.import_module("presage.report.run_page").write(found.folder)
    if arguments.json:
        terminal.print_json(found.summary())
    else:
        _print(found, view.worked)
    return 0


def _count(text: str) -> int:
    """An argument that is a whole number above 0."""
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number above 0")
    return int(text)


def _print(found: Run, worked: bool) -> None:
    summary, best = found.summary(), found.best
    if not worked:
        print("this run had finished before; this is what it found\n")
    found_at = f"found at measurement {summary['best']['found_at']} of {summary['measurements']}"
    times = f"{words.speedup(best.speedup)} the anchor's speed, {found_at}"
    rows = [
        ("best", times if summary["best"]["found_at"] > 1 else "nothing faster than the anchor was found"),
        ("kernel", best.kernel.name.rsplit("/", 1)[-1]),
        ("file", summary["best"]["path"]),
        *(("note", note) for note in summary["notes"]),
        ("measured", f"{summary['measurements']}; {summary['why']}"),
        ("forecasts", str(summary["forecasts"])),
        ("decisions", words.decisions(summary)),
        ("missed", words.missed(summary, found.configuration["delta"])),
        ("report", summary["report"] or "none was written"),
    ]
    for name, text in rows:
        print(f"{name:10} {text}")


class View:
    """What a search is doing, on stderr: a few lines that are redrawn on a terminal, a line per event elsewhere."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._drawn = 0
        self._last = "measuring the anchor"
        self.worked = False
        """Whether there was anything to do."""

    def __call__(self, event: Event, state: State) -> None:
        self.worked = True
        line = _line(event, state)
        if self._terminal:
            self._last = line or self._last
            self._draw(state)
        elif line:
            print(line, file=sys.stderr, flush=True)

    def clear(self) -> None:
        if self._drawn:
            print(f"\x1b[{self._drawn}F\x1b[J", end="", file=sys.stderr, flush=True)
        self._drawn = 0

    def _draw(self, state: State) -> None:
        asked, counts = state.configuration or {}, state.counts
        decided = ", ".join(f"{count} {action}" for action, count in state.decisions.items())
        lines = [
            f"{asked['problem']} on {asked['device']}: {asked['strategy']}, {asked['policy']}, {asked['forecaster']}",
            f"  best      {_times(state.best_value)}",
            f"  decided   {decided or 'nothing yet'}",
            f"  seen      {counts['forecasts']} forecasts, {counts['failed']} failures, {counts['duplicates']} repeats",
            f"  left      {', '.join(_left(asked, state))}",
            f"  {self._last}",
        ]
        width = shutil.get_terminal_size().columns - 1
        self.clear()
        print("\n".join(line[:width] for line in lines), file=sys.stderr, flush=True)
        self._drawn = len(lines)


def _line(event: Event, state: State) -> str:
    told = event.payload
    if event.kind == "session":
        return f"process {told['pid']} goes on after {told['lived']:.0f} s" if state.hashes else "measuring the anchor"
    if event.kind == "measured":
        found = told["status"] if told["value"] is None else _times(told["value"])
        expected = "" if told["expected"] is None else f", forecast {_times(told['expected'])}"
        best, number = _times(state.best_value), state.spent.measurements
        return f"measurement {number}: {found}{expected}; best {best}; {told['name']}"
    if event.kind == "proposed" and told.get("notes"):
        return f"proposing: {'; '.join(told['notes'])}"
    if event.kind == "decided" and state.step:
        actions = [action for _, action, _ in told["decisions"]]
        actions += ["broken"] * len(state.step.broken)
        said = ", ".join(f"{actions.count(action)} {action}" for action in dict.fromkeys(actions))
        return f"step {state.step.number}: {said}"
    if event.kind == "promoted":
        return f"nothing new comes: measuring {len(told['nodes'])} that were trusted"
    if event.kind == "finals":
        finalists = len(told["results"]) - 1
        return f"measured again with the anchor: the best {f'{finalists} kernels' if finalists > 1 else 'kernel'}"
    return ""


def _left(asked: dict[str, Any], state: State) -> list[str]:
    limits = Configuration(**asked).limits
    spent = replace(state.spent, wall_seconds=state.spent.wall_seconds + time.time() - state.session_start)
    return [f"{limits.left(name, spent):.4g} {_WORDS.get(name, name)}" for name in limits.limits()]


def _times(log2_S: float) -> str:
    return f"{2**log2_S:.3g}x"
