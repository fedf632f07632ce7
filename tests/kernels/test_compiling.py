"""The compiling process lives on between calls, and nothing that happens to it costs more than what it was at."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from presage.kernels import compiling, static_cuda
from presage.kernels.hardware import find
from presage.kernels.job import Job
from presage.kernels.kernel import from_source

SOURCE = """// presage: entry f
// presage: grid 1
// presage: block 32
extern "C" __global__ void f(float *x) { x[threadIdx.x] = %s; }
"""

needs_nvrtc = pytest.mark.usefixtures("nvrtc_library")


def requests(*values: str) -> list[dict[str, object]]:
    kernels = [from_source(SOURCE % value, ".cu", "f.cu") for value in values]
    return [static_cuda.request(Job(kernel, {}, (), find("h200"))) for kernel in kernels]


def statuses(*values: str) -> list[str]:
    return [answer["status"] for answer in compiling.answers(requests(*values), 60.0)]


@needs_nvrtc
def test_one_process_answers_one_call_after_another() -> None:
    assert statuses("1.f", "nonsense") == ["ok", "compile_error"]
    process = compiling._process()
    assert statuses("2.f") == ["ok"]
    assert compiling._process() is process
    assert compiling.answers([], 60.0) == []


@needs_nvrtc
def test_after_a_process_was_killed_there_is_another() -> None:
    assert statuses("1.f") == ["ok"]
    process = compiling._process()
    os.killpg(process._child.pid, signal.SIGKILL)
    assert statuses("1.f") in (["ok"], ["compile_error"])  # killed before the question, or while it was answered
    assert statuses("1.f") == ["ok"]
    assert not Path(process.folder).exists()


@needs_nvrtc
def test_a_late_process_is_ended() -> None:
    process = compiling.Process(os.pathsep.join(sys.path))
    document = {"requests": requests("1.f"), "timeout": 60.0, "processes": 1}
    assert process.ask(document, until=time.monotonic()) == {}
    assert not process.is_alive
    assert not Path(process.folder).exists()


def test_it_ends_with_the_process_that_asked() -> None:
    code = (
        "import os, signal, sys; sys.path[:0] = sys.argv[2:]\n"
        "from presage.kernels import compiling\n"
        "process = compiling._process()\n"
        "print(process._child.pid, process.folder, flush=True)\n"
        "os.kill(os.getpid(), int(sys.argv[1]))\n"
    )
    for number in (signal.SIGKILL, signal.SIGTERM):
        asker = subprocess.run(
            [sys.executable, "-c", code, str(int(number)), *sys.path], capture_output=True, text=True
        )
        pid, folder = asker.stdout.split()
        until = time.monotonic() + 60
        while (Path(f"/proc/{pid}").exists() or Path(folder).exists()) and time.monotonic() < until:
            time.sleep(0.1)
        assert not Path(f"/proc/{pid}").exists()
        assert not Path(folder).exists()
