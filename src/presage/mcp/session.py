"""Session: what one server has for its agents: roots, what is left to spend, workers, and the searches it has begun."""

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
    """What the user has allowed."""

    roots: tuple[Path, ...] = ()
    runs: Path = Path("presage-runs")
    devices: tuple[str, ...] = ()
    """Those that may be measured on; all if none is named."""
    limits: Amounts = field(default_factory=lambda: Amounts(200, 1800.0, 8))


@dataclass
class Searching:
    """A search that was begun here."""

    run: str
    worker: Worker
    reserved: Amounts
    lines: list[str] = field(default_factory=list)
    """What has happened so far, a line each."""
    measured: int = 0
    limit: int | None = None
    """Measurements, and at most how many."""
    best: float | None = None
    """The best speedup so far."""
    is_stopping: bool = False
    begun: anyio.Event = field(default_factory=anyio.Event)
    ended: anyio.Event = field(default_factory=anyio.Event)
    error: str = ""
    """Why it has failed."""


class Session:
    """For as long as the server lives."""

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
        """While agents are served. A search that goes on at the end is stopped; its run can be continued."""
        async with anyio.create_task_group() as self._tasks:
            try:
                yield self
            finally:
                with anyio.CancelScope(shield=True):
                    await self.stop([each for each in self.searches.values() if not each.ended.is_set()])
                    await self.pool.close()
                self._tasks.cancel_scope.cancel()

    async def work(self, tool: str, request: Mapping[str, Any], tell: Tell) -> dict[str, Any]:
        """Have a worker do this. While it says nothing, the agent is told every few seconds that it goes on."""
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
        """What the agent wrote, with every problem, kernel and anchor as a worker gets it."""
        request = dict(asked)
        if "problem" in asked:
            request["problem"] = files.problem(asked["problem"], self.roots)
        if "kernels" in asked:
            request["kernels"] = [files.kernel(each, self.roots) for each in asked["kernels"]]
        if "anchor" in asked:
            request["anchor"] = files.kernel(asked["anchor"], self.roots)
        return request

    def check_device(self, name: str | None) -> str | None:
        """The device, if it may be used; where several may and none is named, the one that fits is chosen later."""
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
        """A name that no run has yet."""
        stem = re.sub(r"[^A-Za-z0-9_]+", "_", Path(problem).stem)[:60] or "run"
        names = (f"{stem}-{number}" for number in itertools.count(1))
        return next(name for name in names if not self.folder(name).exists() and name not in self.searches)

    def is_going_on(self, run: str) -> bool:
        return run in self.searches and not self.searches[run].ended.is_set()

    async def begin(self, run: str, request: Mapping[str, Any], reserved: Amounts) -> Searching:
        """Begin a search, or go on with one, and return once it has begun. What was reserved has been taken."""
        assert self._tasks
        searching = self.searches[run] = Searching(run, Worker(), reserved)
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
        """Stop these. Their runs can be continued."""
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
            spent.device_seconds += time.monotonic() - heard  # what was under way is told by nobody
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
    """What was reserved and not spent. A search that has begun counts."""
    return Amounts(
        max(0, reserved.measurements - spent.measurements),
        max(0.0, reserved.device_seconds - spent.device_seconds),
        max(0, reserved.searches - spent.searches),
    )
