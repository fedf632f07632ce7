"""Run: a search on disk. `search` begins a run, resumes it, or returns a finished one."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypedDict, Unpack

from presage.core.errors import PresageError, hint
from presage.core.shown import Shown
from presage.core.statistics import Interval
from presage.devices.base import Device
from presage.forecasters.base import Forecaster
from presage.kernels.kernel import Kernel
from presage.policies import registry as policies
from presage.policies.base import Policy
from presage.problems import registry as problems
from presage.problems.base import Problem
from presage.problems.kernel_file import KernelProblem
from presage.proposers.base import Ground, Proposer
from presage.searches import objects as given_objects
from presage.searches import registry as strategies
from presage.searches import result, words
from presage.searches.assembly import assemble
from presage.searches.base import Acquisition, Strategy
from presage.searches.configuration import RUNS, Configuration, extend, modern, with_until
from presage.searches.listeners import Listeners
from presage.searches.loop import Search
from presage.searches.session import Watch
from presage.searches.state import State
from presage.store import lock
from presage.store.store import FILE, LOCK, StorageError, Store

MakeProposer = Callable[[Ground], Proposer]
REPORT = "report.html"
_SUFFIXES = {"c": ".c", "cuda": ".cu"}
_LONGEST_NAME = 255
"""The most bytes in a file name."""


@dataclass(frozen=True)
class Best:
    """The result of a run: the fastest measured kernel."""

    kernel: Kernel
    speedup: Interval
    """The speedup over the anchor: from the finals, side by side with the anchor, if the budget allowed finals."""
    path: Path
    """The kernel's source file, which can be measured by itself."""


class Run(Shown):
    """A run that is read from its folder: its settings and results. Another process may still be working on it."""

    def __init__(self, folder: Path) -> None:
        """Read the run in this folder. Raises PresageError if there is none, if it has not begun, or if it is
        damaged."""
        self.folder = folder
        with Store(folder, writes=False) as store:
            begun = next(store.events("begun"), None)
            if begun is None:
                raise PresageError(f"the run in {folder} has not begun")
            self.configuration: dict[str, Any] = dict(begun.payload["configuration"])
            """The run's settings, with limits that were increased later."""
            for session in store.events("session"):
                self.configuration |= session.payload.get("limits", {})
            last = store.last()
            self.result: dict[str, Any] | None = last.payload if last and last.kind == "finished" else None
            """The payload of the `finished` event; None if the run is not finished."""

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r})"

    @property
    def owner(self) -> str | None:
        """The process that is working on the run, as in `process 123`; None if there is none."""
        return lock.owner(self.folder / LOCK)

    @cached_property
    def _ended(self) -> dict[str, Any]:
        """The result. For a run of an older version, which counted differently, the counts are computed from its
        events. Raises PresageError if the run is not finished."""
        if self.result is None:
            raise PresageError(f"the run in {self.folder} is not finished; the command that began it goes on with it")
        if "broken" in self.result:
            return self.result
        state, policy = State(), policies.get(modern(self.configuration)["policy"])
        listeners = Listeners(strategies.get("random"), policy)  # any strategy will do: the replay asks it nothing
        with Store(self.folder, writes=False) as store:
            for event in store.events():
                listeners.replay(event, state)
        best = self.result["best"]
        found_at = state.numbers[state.hashes.index(best["kernel"])]
        return self.result | result.totals(state, policy) | {"best": best | {"found_at": found_at}}

    @cached_property
    def best(self) -> Best:
        """The result of a finished run, or the best kernel so far, whose speedup has no interval yet. Raises
        PresageError if nothing has been measured."""
        with Store(self.folder, writes=False) as store:
            if self.result:
                found = self.result["best"]
                hash, speedup = found["kernel"], Interval(found["speedup"], found["low"], found["high"])
            else:
                values = [(e.payload["value"], e.payload["kernel"]) for e in store.events("measured")]
                value, hash = max((v for v in values if v[0] is not None), default=(None, ""))
                if value is None:
                    raise PresageError(f"nothing has been measured in {self.folder} yet")
                speedup = Interval(2**value, -math.inf, math.inf)
            kernel = store.kernel(hash)
        return Best(kernel, speedup, self.folder / f"best{_SUFFIXES.get(kernel.language, '.py')}")

    @property
    def measurements(self) -> int:
        """The number of measurements made so far."""
        if self.result:
            return int(self.result["spent"]["measurements"])
        with Store(self.folder, writes=False) as store:
            return sum(1 for _ in store.measured())

    @property
    def broken(self) -> int:
        """The number of candidates that were found broken when compiled or rehearsed, and were not measured."""
        if self.result and "broken" in self.result:
            return int(self.result["broken"])
        with Store(self.folder, writes=False) as store:
            return sum(len(event.payload["broken"]) for event in store.events("forecast"))

    @property
    def delta(self) -> float:
        """A winner is faster than the best kernel by more than this share."""
        told = self.result or {}
        return float(told["delta"] if "delta" in told else self.configuration.get("delta") or 0.0)

    def summary(self) -> dict[str, Any]:
        """Return the finished run as one JSON document. Raises PresageError if the run is not finished."""
        ended = self._ended
        report = self.folder / REPORT
        asked = {name: self.configuration[name] for name in ("problem", "device", "forecaster", "policy", "strategy")}
        best = self.best
        return {
            "run": str(self.folder),
            **asked,
            "measurements": self.measurements,
            "why": ended["why"],
            **{name: ended[name] for name in ("forecasts", "decisions", "broken", "missed")},
            "early_stop": ended.get("early_stop"),
            "optimum": ended.get("optimum"),
            "best": {
                "kernel": best.kernel.hash,
                "path": str(best.path),
                "speedup": best.speedup.value,
                "low": best.speedup.low,
                "high": best.speedup.high,
                "found_at": ended["best"]["found_at"],
            },
            "notes": words.notes(ended),
            "spent": ended["spent"],
            "report": str(report) if report.exists() else None,
        }


def folders(under: Path = RUNS) -> list[Path]:
    """The folders of the runs in this folder, in alphabetical order."""
    return sorted(file.parent for file in under.glob(f"*/{FILE}"))


class Settings(TypedDict, total=False):
    """The settings of `search` that are no parts: its limits, and how it works."""

    budget: int | None
    device_seconds: float | None
    wall: float | None
    tokens: int | None
    dollars: float | None
    alpha: float | None
    delta: float | None
    until: float | None
    rehearse: bool
    seconds: float | None
    batch: int | None
    seed: int


def search(
    problem: str | Path | Problem,
    kernels: Sequence[str | Path] = (),
    *,
    only: bool = False,
    device: str | Device | None = None,
    forecaster: str | Forecaster | None = None,
    policy: str | Policy | None = None,
    strategy: str | Strategy = strategies.DEFAULT,
    acquisition: str | Acquisition | None = None,
    proposer: str | MakeProposer | None = None,
    anchor: str | Path | Kernel | None = None,
    run: str | Path | None = None,
    watch: Watch | None = None,
    **settings: Unpack[Settings],
) -> Run:
    """Search for a faster kernel, and return the finished Run.

    problem: a name from the catalogue, a path, or a Problem. The path of a bare kernel's file searches that kernel.
    kernels: paths of kernel files. Their tunables are searched in addition to those of the problem's own families.
    only: search `kernels` instead of the problem's own families.
    device, forecaster, policy, strategy, acquisition: names, optionally with settings (`topk:k=4`), or objects.
    proposer: a name, a Proposer class, or a function that makes a Proposer from a Ground.
    anchor: the kernel that speedups are relative to; by default the problem's own anchor.
    run: the folder of the run; by default one in `presage-runs`, named after the problem, the device and the seed.
    watch: called with the event and the state after each event.
    settings: `budget`, `device_seconds`, `wall`, `tokens`, `dollars`, `alpha`, `delta`, `until`, `rehearse`, `seconds`,
    `batch` and `seed`, as `presage search --help` explains them.

    If the folder already holds the run, the search resumes it. A finished run is returned unchanged, unless it is given
    a larger budget. The search uses copies of a strategy, policy or acquisition object. A run that was begun with an
    object resumes only with an object of the same class and settings. Device and forecaster objects stay open.

    Raises PresageError for settings that are unknown or cannot work, and for a folder that holds a run with other
    settings."""
    start = time.monotonic()
    parts = {
        "problem": problem, "device": device, "forecaster": forecaster, "policy": policy, "strategy": strategy,
        "acquisition": acquisition, "proposer": proposer, "anchor": anchor,
    }  # fmt: skip
    texts, objects = given_objects.split(parts)
    texts |= _kernels(texts["problem"], kernels, only)
    _check_names(settings)
    asked = Configuration(**texts, **settings)
    configuration = Configuration(**texts, **with_until(settings)).complete(objects)
    labels: dict[str, Any] = {
        name: given_objects.label(objects[name]) for name in ("problem", "device") if name in objects
    }
    folder = _folder(Path(run) if run else replace(configuration, **labels).folder)
    if not (folder / FILE).exists():
        asked.refuse_idle(configuration)
    _work(configuration, objects, folder, watch, start)
    finished = Run(folder)
    write_best(finished)
    return finished


def _check_names(settings: Mapping[str, Any]) -> None:
    known = Settings.__annotations__
    for name in settings:
        if name not in known:
            raise PresageError(f"a search has no setting '{name}'; {hint(name, known, 'it has: ' + ', '.join(known))}")


def _kernels(problem: str, named: Sequence[str | Path], only: bool) -> dict[str, Any]:
    """Return the settings `problem`, `kernels` and `only`. A kernel's file in place of the problem stands for the
    problem that this kernel solves."""
    if isinstance(named, str | Path) or not all(isinstance(each, str | Path) for each in named):
        raise PresageError("kernels must be a list of paths")
    kernels = [str(each) for each in named]
    if not problems.is_kernel_file(problem):
        return {"kernels": kernels or None, "only": only and bool(kernels)}
    known = problems.of_kernel_file(problem)
    if isinstance(known, KernelProblem):
        return {"kernels": [problem, *kernels], "only": True}
    return {"problem": known.name, "kernels": [problem, *kernels], "only": True}


def _work(
    configuration: Configuration, objects: dict[str, Any], folder: Path, watch: Watch | None, start: float
) -> None:
    """Begin or resume the run in the folder, and work on it until it is finished."""
    is_new = not (folder / FILE).exists()
    with ExitStack() as stack:
        # Assemble a new run first, so that an error such as a misspelt name leaves no folder behind.
        parts = assemble(configuration, objects, stack, is_new) if is_new else None
        store = stack.enter_context(Store(folder))
        begun = next(store.events("begun"), None)
        limits = {}
        if begun:
            limits = extend(Run(folder).configuration, configuration, folder)
        last = store.last()
        if last is not None and last.kind == "finished" and not limits:
            return
        parts = parts or assemble(configuration, objects, stack, is_new)
        if not begun:
            store.append("begun", {"configuration": asdict(configuration)})
        loop = Search(
            store,
            parts,
            configuration.limits,
            configuration.batch or 1,
            configuration.seed,
            watch,
            time.monotonic() - start,
            configuration.until,
            limits,
        )
        stack.callback(loop.close)
        try:
            loop.run()
        except StorageError:
            raise
        except PresageError:
            if is_new and not loop.state.has_cost:
                stack.close()
                _remove(folder)
            raise


def _folder(folder: Path) -> Path:
    """Return the folder. Raises PresageError if a run cannot be stored there, before anything is spent on the run."""
    too_long = any(len(os.fsencode(part)) > _LONGEST_NAME for part in folder.parts)
    if too_long or "\0" in str(folder):
        why = f"a name in it has more than {_LONGEST_NAME} bytes" if too_long else "it has a zero in it"
        raise PresageError(f"no run can be kept in {str(folder)[:60]!r}…: {why}; name another folder with --run")
    nearest = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    if not (folder / FILE).exists() and not os.access(nearest, os.W_OK | os.X_OK):
        raise PresageError(f"cannot write to {nearest}; name another folder with --run")
    return folder


def _remove(folder: Path) -> None:
    """Remove a run that turned out to be impossible before more than the anchor was measured."""
    for file in (*folder.glob(f"{FILE}*"), folder / LOCK):
        file.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # the folder holds other files
        folder.rmdir()


def _about(run: Run) -> str:
    """A header for the best kernel's file if the recording has only the values of tunables; else empty."""
    lines = run.best.kernel.source.splitlines()
    if run.best.kernel.is_bare and lines and all(line.startswith("#define ") for line in lines):
        problem, device = run.configuration["problem"], run.configuration["device"]
        return (
            f"// The best values of the tunables of {problem} on {device}. The recording has no source of the kernel:\n"
            "// 'presage corpus import --source FILE' adds one. Compile your kernel with these lines before it.\n"
        )
    return ""


def write_best(run: Run) -> None:
    """Write the best kernel so far into the run's folder. Raises PresageError if that fails."""
    best = run.best
    try:
        best.path.write_text(f"{_about(run)}{best.kernel.source}", encoding="utf-8")
    except OSError as error:
        raise PresageError(
            f"cannot write {best.path}: {error.strerror}; make room and run the same command again"
        ) from error
