"""Run: one search from start to finish, on disk. `search` begins it, goes on with it, or hands back a finished one."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from presage.core.errors import PresageError
from presage.core.statistics import Interval
from presage.devices import recorded
from presage.devices import registry as devices
from presage.devices.base import Device
from presage.forecasters import learned
from presage.forecasters import registry as forecasters
from presage.kernels.kernel import Kernel
from presage.policies import registry as policies
from presage.policies.base import Policy
from presage.problems import registry as problems
from presage.problems.base import Problem
from presage.proposers import registry as proposers
from presage.searches import registry as strategies
from presage.searches import words
from presage.searches.budget import Budget
from presage.searches.loop import Parts, Search, Watch
from presage.searches.state import State
from presage.store import lock
from presage.store.store import FILE, LOCK, StorageError, Store

RUNS = Path("presage-runs")
"""Where runs live unless another folder is named, in the folder that one works in."""
REPORT = "report.html"
NO_FORECASTER = "none"
_SUFFIXES = {"c": ".c", "cuda": ".cu"}
_BATCH = {"knobs": 32, "pool": 256, "llm": 8}
"""Candidates of a step: as many as can be compiled, are recorded with what compiling tells, or can be paid for."""
_BATCH_MEASURED = 4
"""The same where each is measured."""
_LONGEST_NAME, _LONGEST_PART = 255, 80
"""Bytes that a file system takes for a name, and that we take for each part of one."""


@dataclass(frozen=True)
class Configuration:
    """What a run is asked for; its folder takes no other. None stands for the default of the place."""

    problem: str
    device: str | None = None
    forecaster: str | None = None
    policy: str | None = None
    strategy: str = strategies.DEFAULT
    proposer: str | None = None
    anchor: str | None = None
    """What speedups are relative to, by path or name."""
    budget: int | None = 64
    """The most measurements."""
    device_seconds: float | None = None
    wall: float | None = None
    """Seconds, over all processes of the run."""
    tokens: int | None = None
    dollars: float | None = None
    alpha: float = 0.05
    """For the policy `risk`: how many of the winners may be passed over."""
    delta: float = 0.05
    """For the policy `risk`: a winner is faster than the best by more than this share."""
    early_stop: bool = True
    """Whether the search ends when what is left is so unlikely to win that the policy's promise allows to leave it."""
    batch: int | None = None
    """How many candidates a step proposes."""
    seed: int = 0

    @property
    def limits(self) -> Budget:
        return Budget(self.budget, self.device_seconds, self.wall, self.tokens, self.dollars)

    @property
    def folder(self) -> Path:
        """The run's folder unless one is named: it tells the problem, the device and the seed."""
        device = (self.device or "").removesuffix(".parquet").replace(":", "/").strip("/").split("/")
        parts = (Path(self.problem).stem, *device[:1], *device[1:][-1:], str(self.seed))
        return RUNS / "-".join(os.fsdecode(os.fsencode(part)[:_LONGEST_PART]) for part in parts)

    def complete(self) -> Configuration:
        """Every default filled in, and every name known."""
        if not self.problem.strip():
            raise PresageError("name a problem: 'presage problems' lists the catalogue's")
        device = self.device or _default_device()
        recorded = device.startswith("recorded:")
        proposer = self.proposer or ("pool" if recorded else "knobs")
        if recorded and proposer != "pool":
            raise PresageError(f"{device} can measure only what was recorded; leave out --proposer, or write 'pool'")
        forecaster = self.forecaster or _default_forecaster(self.problem, device)
        policy = self.policy or ("always" if forecaster == NO_FORECASTER else policies.DEFAULT)
        measures_all = policy == "always" or forecaster == NO_FORECASTER
        batch = _BATCH_MEASURED if measures_all else _BATCH.get(proposer, _BATCH["knobs"])
        for kind, name, known in (
            ("policy", policy, policies.names()),
            ("strategy", self.strategy, strategies.names()),
            ("proposer", proposer, proposers.names()),
        ):
            if name not in known:
                raise PresageError(f"there is no {kind} '{name}'; there are: {', '.join(known)}")
        if self.batch is not None and self.batch < 1:
            raise PresageError(f"a step proposes 1 candidate or more, not {self.batch}")
        completed = replace(
            self, device=device, proposer=proposer, forecaster=forecaster, policy=policy, batch=self.batch or batch
        )
        completed.limits  # noqa: B018  a budget that cannot be is refused here
        return completed


@dataclass(frozen=True)
class Best:
    """The result: the fastest kernel that was measured."""

    kernel: Kernel
    speedup: Interval
    """Over the anchor, from the last measurement, side by side with it, where the budget allowed one."""
    path: Path
    """The kernel as a file that can be measured by itself."""


class Run:
    """A run's folder, read: what was asked for and what came of it. It may still be worked on."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with Store(folder, writes=False) as store:
            begun = next(store.events("begun"), None)
            if begun is None:
                raise PresageError(f"the run in {folder} has not begun")
            self.configuration: dict[str, Any] = begun.payload["configuration"]
            last = store.last()
            self.result: dict[str, Any] | None = last.payload if last and last.kind == "finished" else None
            """What the run ended with; None until then."""

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r})"

    @property
    def owner(self) -> str | None:
        """The process that is working on it."""
        return lock.owner(self.folder / LOCK)

    @cached_property
    def _ended(self) -> dict[str, Any]:
        """The result, also of a run of an older version, which had counted otherwise: its events tell the same."""
        if self.result is None:
            raise PresageError(f"the run in {self.folder} is not finished; the command that began it goes on with it")
        if "broken" in self.result:
            return self.result
        state = State(strategies.get("random"), _policy(self.configuration))  # the strategy is not asked anything
        with Store(self.folder, writes=False) as store:
            for event in store.events():
                state.apply(event)
        best = self.result["best"]
        found_at = state.numbers[state.hashes.index(best["kernel"])]
        return self.result | state.totals() | {"best": best | {"found_at": found_at}}

    @cached_property
    def best(self) -> Best:
        """The result of a finished run, or the best so far, whose speedup has no interval yet."""
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
        """How many have been made."""
        if self.result:
            return int(self.result["spent"]["measurements"])
        with Store(self.folder, writes=False) as store:
            return sum(1 for _ in store.measured())

    @property
    def broken(self) -> int:
        """How many candidates could not work, as compiling told, and were not measured."""
        if self.result and "broken" in self.result:
            return int(self.result["broken"])
        with Store(self.folder, writes=False) as store:
            return sum(len(event.payload["broken"]) for event in store.events("forecast"))

    def summary(self) -> dict[str, Any]:
        """The finished run as one JSON document."""
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
    """The runs' folders in this one, in alphabetical order."""
    return sorted(file.parent for file in under.glob(f"*/{FILE}"))


def search(problem: str, *, run: str | Path | None = None, watch: Watch | None = None, **settings: Any) -> Run:
    """Search for a faster kernel; settings are those of `Configuration`. A run that is in the folder already goes on
    where it was; a finished one is handed back as it is."""
    start = time.monotonic()
    configuration = Configuration(problem, **settings).complete()
    folder = _folder(Path(run) if run else configuration.folder)
    is_new = not (folder / FILE).exists()
    with ExitStack() as stack:
        # What cannot be searched at all, such as a name with a typing error, leaves no folder behind.
        parts = _parts(configuration, stack) if is_new else None
        store = stack.enter_context(Store(folder))
        begun = next(store.events("begun"), None)
        if begun:
            _compare(begun.payload["configuration"], asdict(configuration), folder)
        last = store.last()
        if last is None or last.kind != "finished":
            parts = parts or _parts(configuration, stack)
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
                configuration.early_stop,
            )
            try:
                loop.run()
            except StorageError:
                raise
            except PresageError:
                if is_new and not loop.state.has_cost:
                    stack.close()
                    _remove(folder)
                raise
    finished = Run(folder)
    write_best(finished)
    return finished


def _folder(folder: Path) -> Path:
    """The folder of a run, or why there can be none: so that nothing is spent on a run that cannot be kept."""
    too_long = any(len(os.fsencode(part)) > _LONGEST_NAME for part in folder.parts)
    if too_long or "\0" in str(folder):
        why = f"a name in it has more than {_LONGEST_NAME} bytes" if too_long else "it has a zero in it"
        raise PresageError(f"no run can be kept in {str(folder)[:60]!r}…: {why}; name another folder with --run")
    nearest = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    if not (folder / FILE).exists() and not os.access(nearest, os.W_OK | os.X_OK):
        raise PresageError(f"cannot write to {nearest}; name another folder with --run")
    return folder


def _has_gpu(devices: Path = Path("/dev")) -> bool:
    """Whether there is an NVIDIA GPU; a container may hold any of a machine's, the first or not."""
    return any(file.name.removeprefix("nvidia").isdigit() for file in devices.glob("nvidia[0-9]*"))


def _default_device() -> str:
    if _has_gpu() and find_spec("torch"):
        return "cuda"
    return "recorded:h200" if "h200" in recorded.packaged() else "cpu"


def _default_forecaster(problem: str, device: str) -> str:
    """What was learned from the corpus, where it is there and the problem is one that it can know; for any other
    recorded space, what learns from its measurements alone."""
    model = "cpu" if device.removeprefix("recorded:") == "cpu" else "compiled"
    if problem in problems.names() and (learned.installed() / f"{model}.json").exists():
        return "learned"
    return "surrogate" if device.startswith("recorded:") else NO_FORECASTER


def _parts(configuration: Configuration, stack: ExitStack) -> Parts:
    """The things that the configuration names; they are closed with the stack."""
    proposer = str(configuration.proposer)
    proposers.check(proposer, in_dollars=configuration.dollars is not None)
    device = devices.get(str(configuration.device))
    stack.callback(device.close)
    problem = device.problem(configuration.problem)
    forecaster = None
    if configuration.forecaster != NO_FORECASTER:
        forecaster = forecasters.get(str(configuration.forecaster))
        stack.callback(forecaster.close)
        if configuration.dollars is not None:
            forecaster.check_priced()
    return Parts(
        problem,
        device,
        _anchor(device, problem, configuration.anchor),
        lambda ground: proposers.get(proposer, ground),
        strategies.get(configuration.strategy),
        _policy(asdict(configuration)),
        forecaster,
    )


def _policy(configuration: Mapping[str, Any]) -> Policy:
    name = configuration["policy"]
    return policies.get(name, **({each: configuration[each] for each in ("alpha", "delta")} if name == "risk" else {}))


def _anchor(device: Device, problem: Problem, spec: str | None) -> Kernel:
    anchor = device.kernel(problem, spec) if spec else device.anchor(problem)
    if anchor is None:
        raise PresageError(f"{problem.name} has no anchor on {device.name}; name a kernel with --anchor")
    return anchor.render()


def _compare(was: dict[str, Any], now: dict[str, Any], folder: Path) -> None:
    differences = [f"{name} was {was[name]}, is {now[name]}" for name in now if name in was and was[name] != now[name]]
    if differences:
        raise PresageError(
            f"{folder} holds a run with another configuration: {'; '.join(differences)}. Ask as before to go on with"
            " it, or name another folder with --run"
        )


def _remove(folder: Path) -> None:
    """A run that cannot be done as it was asked for, which was found out after no more than the anchor was measured."""
    for file in (*folder.glob(f"{FILE}*"), folder / LOCK):
        file.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # there is more in it
        folder.rmdir()


def write_best(run: Run) -> None:
    """Write the best kernel so far into the run's folder."""
    best = run.best
    try:
        best.path.write_text(best.kernel.source, encoding="utf-8")
    except OSError as error:
        raise PresageError(
            f"cannot write {best.path}: {error.strerror}; make room and run the same command again"
        ) from error
