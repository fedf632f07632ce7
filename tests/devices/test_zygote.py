"""The fork server of GPU workers, without a GPU; and what a worker is told."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from presage.core.errors import PresageError
from presage.devices.child import Child, environment
from presage.devices.zygote import Zygote


def test_a_worker_that_cannot_start_says_why(tmp_path: Path) -> None:
    zygote = Zygote(("json",), environment("/", 1))
    log = os.open(tmp_path / "log", os.O_RDWR | os.O_CREAT)
    try:
        pid = zygote.fork({"scratch": str(tmp_path / "missing"), "environment": {}}, (log, log, log))
        patience = time.monotonic() + 60
        while (status := zygote.reap(pid)) is None and time.monotonic() < patience:
            time.sleep(0.01)
    finally:
        os.close(log)
        zygote.close()
    assert status is not None
    assert os.waitstatus_to_exitcode(status) == 1
    assert "FileNotFoundError" in (tmp_path / "log").read_text()
    with pytest.raises(PresageError, match="the fork server of GPU workers has died"):
        zygote.reap(pid)


@pytest.mark.parametrize("size", [100_000, 900_000])
def test_a_long_command_reaches_a_worker_whether_it_is_stopped_or_not(size: int) -> None:
    child = Child(())
    try:
        child.wait_ready()
        child.give(60.0)
        for _ in range(2):
            child.command("load", kind="null", comment="x" * size)
    finally:
        child.kill()
    assert not Path(child.scratch).exists()
