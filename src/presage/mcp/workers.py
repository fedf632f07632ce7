"""Workers: subprocesses that run tools. Cancelling a call stops its worker and everything that the worker started."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread

from presage.core.errors import PresageError
from presage.sandbox import processes

TOKEN = "PRESAGE_MCP_TOKEN"
"""The environment variable with the token of HTTP clients. It is not passed on to workers."""
_PATIENCE_SECONDS = 5.0
Hear = Callable[[dict[str, Any]], Awaitable[None]]
"""Called with each progress message of a worker, but not with its answer."""


class WorkerGoneError(PresageError):
    """The worker exited without an answer."""


class Worker:
    """One worker process. It answers one request at a time."""

    def __init__(self) -> None:
        """Start the process. Raises PresageError if this machine has no room for one."""
        try:
            self._process = processes.start_own("presage.mcp.worker", without=(TOKEN,))
        except OSError as error:
            raise PresageError(f"cannot start a process to work on this: {error.strerror}; ask again later") from error

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    async def ask(self, request: Mapping[str, Any], hear: Hear) -> dict[str, Any]:
        """Send a request and return the worker's document. A caller that is cancelled must stop the worker.

        Raises PresageError for an error that the agent can fix, and WorkerGoneError if the worker exits."""

        def exchange() -> dict[str, Any]:
            for message in self._messages(request):
                if "document" in message or "error" in message:
                    return message
                anyio.from_thread.run(hear, message)
            raise WorkerGoneError("the process that worked on this has ended before it was done; ask again")

        answer = await anyio.to_thread.run_sync(exchange, abandon_on_cancel=True)
        if "error" in answer:
            raise PresageError(answer["error"])
        document: dict[str, Any] = answer["document"]
        return document

    def _messages(self, request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        assert self._process.stdin
        assert self._process.stdout
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        for line in self._process.stdout:
            if line.endswith(b"\n"):  # else the worker was killed while it wrote
                yield json.loads(line)

    def interrupt(self) -> None:
        """Send SIGTERM to the worker. Return at once."""
        self._process.terminate()

    async def stop(self) -> None:
        """Stop the worker and wait until it has exited, even if the caller is cancelled."""
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(processes.stop_own, self._process, _PATIENCE_SECONDS)


class Pool:
    """A pool of workers. A worker that has answered is reused for the next call, because its modules are loaded."""

    def __init__(self, most: int = 4) -> None:
        self._room = anyio.CapacityLimiter(most)
        self._idle: list[Worker] = []

    async def ask(self, request: Mapping[str, Any], hear: Hear) -> dict[str, Any]:
        async with self._room:
            worker = self._free()
            try:
                answer = await worker.ask(request, hear)
            except PresageError:
                await self._keep(worker)
                raise
            except BaseException:
                await worker.stop()
                raise
            await self._keep(worker)
            return answer

    def _free(self) -> Worker:
        while self._idle:
            worker = self._idle.pop()
            if worker.is_alive:
                return worker
        return Worker()

    async def _keep(self, worker: Worker) -> None:
        if worker.is_alive:
            self._idle.append(worker)
        else:
            await worker.stop()

    async def close(self) -> None:
        idle, self._idle = self._idle, []
        await stop_all(idle)


async def stop_all(workers: list[Worker]) -> None:
    """Stop these workers in parallel."""
    for worker in workers:
        worker.interrupt()
    for worker in workers:
        await worker.stop()
