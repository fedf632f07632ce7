"""Workers that are killed while they answer, and searches that are begun twice at once."""

from __future__ import annotations

import errno
import io
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from presage import PresageError
from presage.mcp.allowance import Amounts
from presage.mcp.session import Searching, Session, Settings
from presage.mcp.tools import start_search
from presage.mcp.workers import Worker, WorkerGoneError


def killed(said: bytes) -> Worker:
    """A worker that was killed when it had said so much."""
    worker = Worker.__new__(Worker)
    worker._process = SimpleNamespace(stdin=io.BytesIO(), stdout=io.BytesIO(said))  # type: ignore[assignment]
    return worker


@pytest.mark.parametrize("torn", [b"", b'{"document": {"a"', b'{"docum'])
def test_an_answer_that_was_cut_short_is_none(torn: bytes) -> None:
    heard: list[dict[str, Any]] = []

    async def hear(message: dict[str, Any]) -> None:
        heard.append(message)

    with pytest.raises(WorkerGoneError, match="has ended before it was done"):
        anyio.run(killed(b'{"doing": "this"}\n' + torn).ask, {}, hear)
    assert heard == [{"doing": "this"}]


def test_a_run_that_another_call_goes_on_with_meanwhile_is_refused(tmp_path: Path) -> None:
    async def twice() -> None:
        session = Session(Settings(runs=tmp_path))
        session.folder("r").mkdir()

        async def read(*_: object) -> dict[str, Any]:
            session.searches["r"] = Searching("r", killed(b""), Amounts())
            return {"device": "cpu", "measurements": 2, "device_seconds": 1.0}

        session.work = read  # type: ignore[method-assign, assignment]
        with pytest.raises(PresageError, match="the run r goes on already; follow_search follows it"):
            await start_search.call(session, {"run": "r"}, read)  # type: ignore[arg-type]
        assert session.allowance.taken == Amounts()

    anyio.run(twice)


def test_a_search_whose_worker_does_not_start_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    async def begin() -> None:
        async with Session(Settings(runs=tmp_path)).opened() as session:
            monkeypatch.setattr("presage.sandbox.processes.start_own", full)
            with pytest.raises(PresageError, match="cannot start a process to work on this: Resource temporarily"):
                await start_search.call(session, {"problem": "softmax", "budget": 8}, tell)
            assert session.allowance.taken == Amounts()
            assert not session.searches

    anyio.run(begin)


async def tell(*_: object) -> None:
    pass
