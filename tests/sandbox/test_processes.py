"""Zygotes and the children that are forked from them, without a GPU; and what a worker is told."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from presage import PresageError
from presage.devices.child import Child
from presage.sandbox import processes
from presage.sandbox.processes import Task
from presage.sandbox.rules import Rules, environment, program_paths
from presage.sandbox.zygote import Zygote


def test_a_child_that_cannot_start_says_why(tmp_path: Path) -> None:
    zygote = Zygote(("json",), environment("/"))
    rules = Rules(str(tmp_path / "missing"), program_paths(), 1 << 30)
    with (tmp_path / "log").open("w+b") as log:
        child = processes.fork(zygote, Task(processes.EXECUTE, rules, {}, (), log.fileno()))
        child.wait()
    zygote.close()
    assert os.waitstatus_to_exitcode(child.status() or 0) == 1
    assert "FileNotFoundError" in (tmp_path / "log").read_text()
    with pytest.raises(PresageError, match="the process that starts confined children has died"):
        zygote.reap(child.pid)


def test_a_zygote_that_has_died_is_replaced(tmp_path: Path) -> None:
    rules = Rules(str(tmp_path), program_paths(), 1 << 30, may_spawn=True)
    assert processes.run(["/bin/true"], rules, 60.0).status == 0
    zygote = processes._plain()
    assert processes._plain() is zygote
    os.kill(zygote._process.pid, signal.SIGKILL)
    zygote._process.wait()
    assert processes.run(["/bin/true"], rules, 60.0).status == 0


def test_children_end_with_the_process_that_asked_for_them(tmp_path: Path) -> None:
    code = (
        "import os, sys, threading, time; sys.path[:0] = sys.argv[3:]\n"
        "from presage.sandbox import processes, scratch\n"
        "from presage.sandbox.rules import Rules, program_paths\n"
        "folder = scratch.make()\n"
        "rules = Rules(folder, program_paths(), 1 << 30, may_spawn=True)\n"
        "command = ['/bin/sh', '-c', 'echo > started; sleep ' + sys.argv[2]]\n"
        "threading.Thread(target=processes.run, args=(command, rules, 3600.0), daemon=True).start()\n"
        "while not os.path.exists(folder + '/started'): time.sleep(0.05)\n"
        "print(folder, flush=True)\n"
        "os.kill(os.getpid(), int(sys.argv[1]))\n"
    )
    mark = f"3600.{os.getpid()}"
    asker = subprocess.run(
        [sys.executable, "-c", code, str(int(signal.SIGKILL)), mark, *sys.path],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert asker.stdout, asker.stderr
    folder = Path(asker.stdout.strip())
    until = time.monotonic() + 60
    while (folder.exists() or _running(mark)) and time.monotonic() < until:
        time.sleep(0.1)
    assert not _running(mark)
    assert not folder.exists()


def _running(mark: str) -> bool:
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(entry.read_bytes())
        except OSError:
            continue
    return any(mark.encode() in command for command in found)


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
