"""Session: the state of one server: its roots, its budgets, its workers, and the searches that it has begun."""

from __future__ import annotations

import contextlib
import itertools
import re
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.abc

from presage.core.errors import PresageError
from presage.mcp import files
from presage.mcp.allowance import Allowance, Amounts
from presage.mcp.tool import Tell
from presage.mcp.workers import Pool, Worker, WorkerGoneError, stop_all

_MOST_LINES = 10_000
_BEAT_SECONDS = 5.0


@dataclass(frozen=True)
class Settings:
    """What the user allows agents to do: the options of `presage mcp`."""

    roots: tuple[Path, ...] = ()
    runs: Path = Path("presage-runs")
    devices: tuple[str, ...] = ()
    """The devices that agents may measure on; empty for all."""
    limits: Amounts = field(default_factory=lambda: Amounts(200, 1800.0, 8))


@dataclass
class Searching:
    """A search that this server began."""

    run: str
    worker: Worker
    reserved: Amounts
    lines: list[str] = field(default_factory=list)
    """The events so far, a line for each."""
    measured: int = 0
    limit: int | None = None
    """The most measurements that the run may make; None if that is not known. `measured` counts those made."""
    best: float | None = None
    """The best speedup over the anchor so far."""
    is_stopping: bool = False
    begun: anyio.Event = field(default_factory=anyio.Event)
    ended: anyio.Event = field(default_factory=anyio.Event)
    error: str = ""
    """Why the search failed; empty if it did not."""


class Session:
    """The state that all calls to one server share."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.roots = files.Roots(settings.roots)
        self.runs = settings.runs.absolute()
        self.allowance = Allowance(settings.limits)
        self.pool = Pool()
        self.searches: dict[str, Searching] = {}
        self.measuring = anyio.Lock()
        self._tasks: anyio.abc.TaskGroup | None = None

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator[Session]:
        """Hold the session open while the server runs. At the end, stop all searches; their runs can be continued."""
        async with anyio.create_task_group() as self._tasks:
            try:
                yield self
            finally:
                with anyio.CancelScope(shield=True):
                    await self.stop([each for each in self.searches.values() if not each.ended.is_set()])
                    await self.pool.close()
                self._tasks.cancel_scope.cancel()

    async def work(self, tool: str, request: Mapping[str, Any], tell: Tell) -> dict[str, Any]:
        """Run a tool in a worker and return its document. Every few seconds, tell the agent that the work goes on."""
        doing = ""
        answer: dict[str, Any] | PresageError = {}

        async def hear(message: dict[str, Any]) -> None:
            nonlocal doing
            doing = message["doing"]
            await tell(message["share"], 1.0, doing)

        async def beat() -> None:
            while True:
                await anyio.sleep(_BEAT_SECONDS)
                await tell(0.0, 1.0, doing or "starting")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(beat)
            try:
                answer = await self.pool.ask({**request, "tool": tool}, hear)
            except PresageError as error:
                answer = error
            tasks.cancel_scope.cancel()
        if isinstance(answer, PresageError):
            raise answer
        return answer

    def request(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Return the agent's arguments, with every problem, kernel and anchor in the form that a worker takes."""
        request = dict(asked)
        if "problem" in asked:
            request["problem"] = files.problem(asked["problem"], self.roots)
        if "kernels" in asked:
            request["kernels"] = [files.kernel(each, self.roots) for each in asked["kernels"]]
        if "anchor" in asked:
            request["anchor"] = files.kernel(asked["anchor"], self.roots)
        return request

    def check_device(self, name: str | None) -> str | None:
        """Return the device to use. Without a name: the first allowed device, or None to choose one later.

        Raises PresageError for a device that is not allowed."""
        allowed = self.settings.devices
        if name is None:
            return allowed[0] if allowed else None
        if allowed and name not in allowed:
            raise PresageError(f"'{name}' may not be used here; the server was started for {', '.join(allowed)}")
        return name

    # -- searches -----------------------------------------------------------------------------------------------------

    def folder(self, run: str) -> Path:
        return self.runs / run

    def new_run(self, problem: str) -> str:
        """Return a run name that is not in use."""
        stem = re.sub(r"[^A-Za-z0-9_]+", "_", Path(problem).stem)[:60] or "run"
        names = (f"{stem}-{number}" for number in itertools.count(1))
        return next(name for name in names if not self.folder(name).exists() and name not in self.searches)

    def is_going_on(self, run: str) -> bool:
        return run in self.searches and not self.searches[run].ended.is_set()

    async def begin(self, run: str, request: Mapping[str, Any], reserved: Amounts) -> Searching:
        """Begin or continue a search in a new worker, and return when it has begun.

        The caller has taken `reserved` from the allowance. When the search ends, its unspent part is given back; all of
        it if no worker can be started."""
        assert self._tasks
        try:
            worker = Worker()
        except BaseException:
            self.allowance.give_back(reserved)
            raise
        searching = self.searches[run] = Searching(run, worker, reserved)
        self._tasks.start_soon(self._search, searching, {**request, "tool": "start_search"})
        try:
            await searching.begun.wait()
        except anyio.get_cancelled_exc_class():
            await self.stop([searching])
            raise
        if searching.error:
            raise PresageError(searching.error)
        return searching

    async def stop(self, searches: Sequence[Searching]) -> None:
        """Stop these searches. Their runs can be continued."""
        for each in searches:
            each.is_stopping = True
        await stop_all([each.worker for each in searches])

    async def _search(self, searching: Searching, request: Mapping[str, Any]) -> None:
        spent, heard = Amounts(searches=1), time.monotonic()

        async def hear(message: dict[str, Any]) -> None:
            nonlocal heard
            heard = time.monotonic()
            spent.measurements, spent.device_seconds = message["measurements"], message["device_seconds"]
            searching.measured, searching.limit, searching.best = (message[k] for k in ("measured", "limit", "best"))
            if message["doing"] and len(searching.lines) < _MOST_LINES:
                searching.lines.append(message["doing"])
            searching.begun.set()

        try:
            await searching.worker.ask(request, hear)
        except WorkerGoneError:
            spent.device_seconds += time.monotonic() - heard  # the worker cannot report its unfinished measurement
            if not searching.is_stopping:
                searching.error = "its process has ended; start_search with the name of the run continues it"
        except PresageError as error:
            searching.error = str(error)
        finally:
            await searching.worker.stop()
            self.allowance.give_back(_rest(searching.reserved, spent))
            searching.ended.set()
            searching.begun.set()


def _rest(reserved: Amounts, spent: Amounts) -> Amounts:
    """Return what was reserved and not spent."""
    return Amounts(
        max(0, reserved.measurements - spent.measurements),
        max(0.0, reserved.device_seconds - spent.device_seconds),
        max(0, reserved.searches - spent.searches),
    )
