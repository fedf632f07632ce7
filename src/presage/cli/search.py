"""`presage search PROBLEM`: search for a faster kernel, show the progress, and print the result."""

from __future__ import annotations

import argparse
import shutil
import sys
import textwrap
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from presage.cli import documents, terminal
from presage.core.errors import PresageError
from presage.plugins.group import ACQUISITIONS, FORECASTERS, POLICIES, PROPOSERS, STRATEGIES
from presage.plugins.summaries import summaries
from presage.searches import words
from presage.searches.budget import Amounts, Budget
from presage.searches.configuration import RUNS, UNTIL, Configuration, limits_of, modern
from presage.searches.run import REPORT, Run, search, write_best
from presage.searches.state import State
from presage.store.store import Event

_TICK_SECONDS = 1.0
_WORDS = {"device_seconds": "s of the device", "wall_seconds": "s", "dollars": "dollars"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _add_kernels(parser)
    _add_parts(parser)
    _add_limits(parser)
    _add_aims(parser)
    _add_ways(parser)
    parser.formatter_class = _WithNames
    parser.epilog = _WithNames.MARK


def _add_kernels(parser: argparse.ArgumentParser) -> None:
    """What is searched."""
    terminal.add_problem(parser, "; or a kernel file, to tune it; or a name in the recording")
    parser.add_argument(
        "kernels", nargs="*", metavar="KERNEL",
        help="kernel files whose tunables are searched, too, beside those of the catalogue's families",
    )  # fmt: skip
    parser.add_argument("--only", action="store_true", help="search the named kernels in place of the catalogue's")


def _add_parts(parser: argparse.ArgumentParser) -> None:
    """The parts of a search that have names."""
    parser.add_argument(
        "--device",
        help="where to measure (default: for the catalogue's kernels cuda where there is a GPU, else recorded:h200;"
        " for your own, cuda or cpu, whichever runs them)",
    )
    parser.add_argument(
        "--forecaster", metavar="NAME",
        help="what forecasts speedups (default: learned; for recordings of other problems surrogate, for modules on a"
        " CPU none); 'none' measures everything",
    )  # fmt: skip
    parser.add_argument(
        "--policy", metavar="NAME",
        help="what decides which candidates to measure, such as topk:k=4 (default: risk; always without a forecaster)",
    )  # fmt: skip
    parser.add_argument(
        "--strategy", metavar="NAME", default=Configuration.strategy,
        help="what chooses parents, such as puct:c=1.2 (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--acquisition", metavar="NAME",
        help="the order of candidates, such as upper_bound:beta=2 (default: expected_improvement)",
    )  # fmt: skip
    parser.add_argument(
        "--proposer", metavar="NAME",
        help="what writes candidates (default: pool on a recorded device, llm for a problem that a Python file states,"
        " else knobs)",
    )  # fmt: skip
    parser.add_argument(
        "--anchor", metavar="KERNEL", help="the kernel that speedups are relative to (default: the device's own)"
    )


def _add_limits(parser: argparse.ArgumentParser) -> None:
    """What may be spent."""
    limits = parser.add_argument_group("budgets, which are never exceeded; a larger one continues a finished run")
    limits.add_argument(
        "--budget", type=terminal.whole(1), metavar="N",
        help=f"measurements (default: {Configuration.budget}, or fewer, as --until says)",
    )  # fmt: skip
    limits.add_argument("--device-seconds", type=terminal.positive, metavar="S", help="seconds on the device")
    limits.add_argument(
        "--wall", type=terminal.positive, metavar="S", help="seconds in total, over every time the run is continued"
    )
    limits.add_argument("--tokens", type=terminal.whole(1), metavar="N", help="tokens of language models")
    limits.add_argument(
        "--dollars", type=terminal.positive, metavar="D", help="dollars for language models; needs their prices"
    )


def _add_aims(parser: argparse.ArgumentParser) -> None:
    """What may be missed, and when nothing is left to find."""
    parser.add_argument(
        "--alpha", type=terminal.positive, metavar="SHARE",
        help="short for risk:alpha=SHARE: the share of winners that may be missed (default: 0.05)",
    )  # fmt: skip
    parser.add_argument(
        "--delta", type=terminal.positive, metavar="SHARE",
        help="short for risk:delta=SHARE: a winner is faster than the best by more than this share (default: 0.05)",
    )  # fmt: skip
    parser.add_argument(
        "--until", type=terminal.positive, metavar="SHARE",
        help="stop when it is improbable (alpha) that anything left is faster than the best by more than SHARE"
        f" (default: {UNTIL} without --budget, --wall and --device-seconds; else go on to their end)",
    )  # fmt: skip


def _add_ways(parser: argparse.ArgumentParser) -> None:
    """How it works, and where it keeps its run."""
    parser.add_argument(
        "--rehearse", action="store_true",
        help="run candidates on the CPU first, on small inputs; those that compute something else are not measured",
    )  # fmt: skip
    parser.add_argument(
        "--seconds", type=terminal.positive, metavar="S",
        help="the longest that a case of a kernel is timed (default: 1, and 3 for the anchor and the best)",
    )  # fmt: skip
    parser.add_argument(
        "--batch", type=terminal.whole(1), metavar="N", help="candidates per step (default: depends on the proposer)"
    )
    parser.add_argument(
        "--seed", type=int, default=Configuration.seed, help="seed of all random choices (default: %(default)s)"
    )
    parser.add_argument(
        "--run", metavar="FOLDER", dest="folder",
        help=f"the folder of the run; the same command continues it (default: {RUNS}/PROBLEM-DEVICE-SEED)",
    )  # fmt: skip


class _WithNames(argparse.RawDescriptionHelpFormatter):
    """Lists plugin names at the end of the help. They are looked up only when the help is printed."""

    MARK = "names"

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return super()._fill_text(_names() if text == self.MARK else text, width, indent)


def _names() -> str:
    """Return the names that options accept as NAME, with a summary line for each. No plugin is imported for this."""
    parts = []
    for group in (FORECASTERS, POLICIES, STRATEGIES, ACQUISITIONS, PROPOSERS):
        told = summaries(group)
        lines = [_wrapped(name, summary) for name, summary in told.items()]
        parts += [f"{group.plural}:", *lines, ""] if told else []
    return "\n".join([*parts, "Settings follow the name, as in --policy topk:k=4; 'presage plugins' lists them."])


def _wrapped(name: str, summary: str) -> str:
    width = max(40, shutil.get_terminal_size().columns - 2)
    return textwrap.fill(summary or "-", width, initial_indent=f"  {name:12} ", subsequent_indent=" " * 15)


def run(arguments: argparse.Namespace) -> int:
    problem, kernels = _words(arguments)
    asked = Configuration.__dataclass_fields__.keys() - {"problem", "kernels"}
    settings = {name: getattr(arguments, name) for name in asked}
    if arguments.budget is None:
        del settings["budget"]  # a budget is passed on only if it was typed: a typed budget is spent to its end
    view = View()
    try:
        found = search(problem, kernels, run=arguments.folder, watch=view, **settings)
    except KeyboardInterrupt:
        view.leave()
        _say_stopped(view.folder(arguments.folder), arguments.json)
        raise
    finally:
        view.leave()
    _write_page(found)
    if arguments.json:
        documents.write("search", document(found))
    else:
        _print(found, view.worked)
    return 0


def _words(arguments: argparse.Namespace) -> tuple[str, list[str]]:
    """Return the problem and the kernels that were typed."""
    words = [word for word in (arguments.problem, arguments.first, *arguments.kernels) if word is not None]
    if not words:
        raise PresageError("name a problem, or a kernel file to tune; 'presage problems' lists the catalogue's")
    if arguments.only and len(words) == 1:
        raise PresageError("--only searches kernels that are named; name some after the problem")
    return words[0], words[1:]


def document(found: Run) -> dict[str, Any]:
    summary = found.summary()
    best = _best(found) | {"found_at": summary["best"]["found_at"]}
    return {"run": summary.pop("run"), "stopped": False, **summary, "best": best}


def so_far(found: Run) -> dict[str, Any]:
    """Return the document of a run that is not finished."""
    asked = {name: found.configuration[name] for name in ("problem", "device", "forecaster", "policy", "strategy")}
    told = {"run": str(found.folder), "stopped": True, **asked, "measurements": found.measurements}
    report = found.folder / REPORT
    return told | {"best": _best(found), "report": str(report) if report.exists() else None}


def _best(found: Run) -> dict[str, Any]:
    best = found.best
    return {"kernel": documents.kernel(best.kernel), "path": str(best.path), "speedup": best.speedup._asdict()}


def _write_page(found: Run) -> None:
    from presage.report import frozen  # imported late: a search needs it only at its end

    frozen.write(found.folder)


def _say_stopped(folder: Path | None, as_json: bool) -> None:
    """Print what a stopped run has found so far, and how to continue it."""
    if folder is None:
        return
    found = Run(folder)
    if not found.measurements:
        print(f"nothing was measured yet; the same command starts again, in {folder}", file=sys.stderr)
        return
    write_best(found)
    _write_page(found)
    best, report = found.best, str(folder / REPORT)
    if as_json:
        documents.write("search", so_far(found))
        return
    rows = [
        ("best", f"{best.speedup.value:.3g}x the anchor's speed, so far"),
        ("kernel", best.kernel.name.rsplit("/", 1)[-1]),
        ("file", str(best.path)),
        ("measured", f"{found.measurements}; it was stopped; the same command continues it"),
        ("report", report),
    ]
    for name, text in rows:
        print(f"{name:10} {text}", flush=True)


def _print(found: Run, worked: bool) -> None:
    summary, best = found.summary(), found.best
    if not worked:
        print("this run was finished before; this is its result\n")
    found_at = f"found at measurement {summary['best']['found_at']} of {summary['measurements']}"
    times = f"{words.speedup(best.speedup)} the anchor's speed, {found_at}"
    rows = [
        ("best", times if summary["best"]["found_at"] > 1 else "nothing faster than the anchor was found"),
        ("kernel", best.kernel.name.rsplit("/", 1)[-1]),
        ("file", summary["best"]["path"]),
        *([("optimum", words.optimum(summary["optimum"]))] if summary["optimum"] else []),
        *(("note", note) for note in summary["notes"]),
        ("measured", f"{summary['measurements']}; {summary['why']}"),
        *(("saved", saved) for saved in [words.saved(summary["early_stop"] or {})] if saved),
        ("forecasts", str(summary["forecasts"])),
        ("decisions", words.decisions(summary)),
        ("missed", words.missed(summary, found.delta)),
        ("report", summary["report"] or "none was written"),
    ]
    for name, text in rows:
        print(f"{name:10} {text}")


class View:
    """Shows the progress of a search on stderr: a panel on a terminal, a line per event elsewhere."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._drawn = 0
        self._last = "measuring the anchor"
        self._state: State | None = None
        self._drawing = threading.Lock()
        self._left = threading.Event()
        if self._terminal:
            threading.Thread(target=self._tick, daemon=True).start()

    @property
    def worked(self) -> bool:
        """Whether the search did any work. False if the run was finished before."""
        return self._state is not None

    def folder(self, named: str | None) -> Path | None:
        """The folder of the run; None before the run has begun."""
        if self._state is None or self._state.configuration is None:
            return None
        return Path(named) if named else Configuration(**modern(self._state.configuration)).folder

    def __call__(self, event: Event, state: State) -> None:
        with self._drawing:
            self._show(event, state)

    def _show(self, event: Event, state: State) -> None:
        self._state = state
        for note in event.payload.get("notes", ()) if event.kind == "session" else ():
            self._clear()
            print(note, file=sys.stderr, flush=True)
        line = line_of(event, state)
        if self._terminal:
            self._last = line or self._last
            self._draw(state)
        elif line:
            print(line, file=sys.stderr, flush=True)

    def leave(self) -> None:
        """Stop redrawing. The last panel stays on the terminal."""
        with self._drawing:
            self._left.set()
            self._drawn = 0

    def _tick(self) -> None:
        """Redraw the panel every second, so that the shown time advances during a long measurement."""
        while not self._left.wait(_TICK_SECONDS):
            with self._drawing:
                if self._drawn and self._state and not self._left.is_set():
                    self._draw(self._state)

    def _clear(self) -> None:
        if self._drawn:
            terminal.control(f"\x1b[{self._drawn}F\x1b[J")
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
            f"  time      {_time(limits_of(asked), state)}",
            f"  {self._last}",
        ]
        width = shutil.get_terminal_size().columns - 1
        self._clear()
        print("\n".join(line[:width] for line in lines), file=sys.stderr, flush=True)
        self._drawn = len(lines)


def line_of(event: Event, state: State) -> str:
    """Return a line that describes the event, or an empty string if the event is not worth a line."""
    told = event.payload
    if event.kind == "session":
        return f"process {told['pid']} continues after {told['lived']:.0f} s" if state.hashes else _beginning(state)
    if event.kind == "measured":
        found = told["status"] if told["value"] is None else _times(told["value"])
        expected = "" if told["expected"] is None else f", forecast {_times(told['expected'])}"
        best, number = _times(state.best_value), state.spent.measurements
        return f"measurement {number}: {found}{expected}; best {best}; {told['name']}"
    if event.kind == "proposed" and told.get("notes"):
        return f"proposing: {'; '.join(told['notes'])}"
    if event.kind == "forecast" and told.get("short"):
        return f"forecasting: {told['short']}"
    if event.kind == "decided" and state.step:
        actions = [action for _, action, _ in told["decisions"]]
        actions += ["broken"] * len(state.step.broken)
        said = ", ".join(f"{actions.count(action)} {action}" for action in dict.fromkeys(actions))
        return f"step {state.step.number}: {said}"
    if event.kind == "lost" and not told["cancelled"]:
        return f"a worker was lost, and its kernel is measured again: {told['why']}"
    if event.kind == "promoted":
        return f"measuring {len(told['nodes'])} that were trusted, after all"
    if event.kind == "finals":
        finalists = len(told["results"]) - 1
        return f"measured again with the anchor: the best {f'{finalists} kernels' if finalists > 1 else 'kernel'}"
    return ""


def _beginning(state: State) -> str:
    device = (state.configuration or {}).get("device")
    return f"measuring the anchor on {device}" if device else "measuring the anchor"


def _left(asked: dict[str, Any], state: State) -> list[str]:
    limits = limits_of(asked)
    spent = _spent(state)
    return [f"{limits.left(name, spent):.4g} {_WORDS.get(name, name)}" for name in limits.limits()]


def _spent(state: State) -> Amounts:
    return replace(state.spent, wall_seconds=state.spent.wall_seconds + time.time() - state.session_start)


def _time(limits: Budget, state: State) -> str:
    """Return the time spent so far and, if a budget bounds it, the time left."""
    spent = _spent(state)
    told = f"{_duration(spent.wall_seconds)} so far"
    if limits.wall_seconds is not None:
        return f"{told}, {_duration(limits.left('wall_seconds', spent))} left at most"
    if limits.measurements is None or spent.measurements < 2:
        return told
    each = spent.wall_seconds / spent.measurements
    return f"{told}, about {_duration(each * limits.left('measurements', spent))} left"


def _duration(seconds: float) -> str:
    """
    >>> [_duration(seconds) for seconds in (0.4, 59.6, 200, 10_000)]
    ['0 s', '1 min 0 s', '3 min 20 s', '2 h 46 min']
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _times(log2_S: float) -> str:
    return f"{2**log2_S:.3g}x"
