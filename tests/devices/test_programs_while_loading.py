"""A worker that may start programs, as those on a GPU may, is not accused for doing so while it is loaded."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from presage.devices.arena import ARENA_BYTES, Arena
from presage.devices.child import Child
from presage.sandbox import processes, rules
from presage.sandbox.processes import ForkedProcess, Task
from presage.sandbox.rules import Rules
from presage.sandbox.zygote import Zygote

ZYGOTE = "programs while loading"
ENTRY = "\ndef custom_kernel(data):\n    return data[0] + data[1]\n"
PROGRAMS = {
    "waited for": "import subprocess\nassert subprocess.run(['uname', '-r'], capture_output=True, timeout=20).stdout",
    "in a shell": "import os\nassert os.system('true') == 0",
    "another python": "import subprocess, sys\nsubprocess.run([sys.executable, '-S', '-c', 'print(1)'], check=True)",
    "left running": "import subprocess\nprogram = subprocess.Popen(['sleep', '0.1'])",
    "that is not there": "import subprocess\ntry:\n    subprocess.run(['no-such-program'])\nexcept OSError:\n    pass",
    "a fork": "import os\nif not (child := os.fork()):\n    os._exit(0)\nos.waitpid(child, 0)",
}


class Spawning(Child):
    """With a GPU's rules, and without a GPU."""

    stop_ns = 500_000

    def __init__(self, zygote: Zygote) -> None:
        self._zygote = zygote
        self._take_place(Arena(), None)
        limits = Rules(
            self.scratch, rules.system_paths(), 2 << 30, 1 << 20, may_spawn=True, uses_gpu=True, reserves=True
        )
        settings: dict[str, Any] = {"imports": ["numpy"], "arena_bytes": ARENA_BYTES, "threads": 1}
        self._start(limits, rules.environment(self.scratch), settings, (self.arena.fd,))

    def _launch(self, task: Task) -> ForkedProcess:
        assert self._zygote is not None
        return processes.fork(self._zygote, task)


@pytest.fixture
def worker() -> Iterator[Spawning]:
    made = Spawning(processes.zygote(ZYGOTE, ("numpy", "presage.devices.worker.main")))
    yield made
    made.kill()
    processes.rest(ZYGOTE)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_that_is_run_while_a_module_is_loaded(name: str, worker: Spawning) -> None:
    worker.wait_ready()
    worker.give(60.0)
    path = Path(worker.scratch, "candidate.py")
    path.write_text(PROGRAMS[name] + ENTRY)
    worker.command("load", kind="module", path=str(path))
    time.sleep(0.2)  # what it left behind ends
    worker.command("lay out", slots=[[0, 0]], inputs=[{"dtype": "float32", "shape": [4]}] * 2, parameters=[])
    assert len(worker.window(1).answer["outputs"]) == 1
