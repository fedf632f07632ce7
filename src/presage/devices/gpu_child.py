"""GpuChild: a worker forked from the zygote, with a context on the GPU from before its sandbox closed."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any

from presage.devices.child import Child
from presage.devices.zygote import Zygote
from presage.kernels import toolkit

_MEMORY_BYTES = 32 << 30
_FILE_BYTES = 1 << 30
_END_SECONDS = 30.0
_STOPPED, _CONTINUED = signal.SIGSTOP << 8 | 0x7F, 0xFFFF


class GpuChild(Child):
    """The same protocol as any child; its arena is given to it when it enters the lane."""

    def __init__(self, zygote: Zygote, ground: dict[str, Any], with_torch: bool) -> None:
        self._zygote, self._ground = zygote, ground | {"torch": with_torch}
        super().__init__(spawn=self._fork, memory_bytes=_MEMORY_BYTES, file_bytes=_FILE_BYTES)

    def _fork(self, settings: dict[str, Any], descriptors: tuple[int, int, int]) -> ForkedProcess:
        """It finds what a module needs that builds an extension: ninja, which comes with a Python, and nvcc."""
        environment, home = settings["environment"], toolkit.home()
        found = {"CUDA_HOME": str(home)} if home else {}
        folders = (os.path.dirname(sys.executable), *(f"{path}/bin" for path in found.values()), environment["PATH"])
        settings["gpu"] = self._ground
        settings["readable"] += found.values()
        settings["environment"] = {
            **environment,
            **found,
            "PATH": ":".join(folders),
            "TRITON_CACHE_DIR": os.path.join(self.scratch, "triton"),
            "TORCH_EXTENSIONS_DIR": os.path.join(self.scratch, "extensions"),
            "TORCHINDUCTOR_CACHE_DIR": os.path.join(self.scratch, "inductor"),
        }
        return ForkedProcess(self._zygote, self._zygote.fork(settings, descriptors))


class ForkedProcess:
    """A process that is not our own child: its state is read from /proc, its end told by the one who forked it."""

    def __init__(self, zygote: Zygote, pid: int) -> None:
        self._zygote, self.pid = zygote, pid
        self._stopped = False
        self._ended: int | None = None

    def news(self) -> int | None:
        if self._ended is not None:
            return None
        state = _state(self.pid)
        if state in ("", "Z", "X"):
            self._ended = self._zygote.reap(self.pid)
            return self._ended
        stopped = state == "T"
        if stopped == self._stopped:
            return None
        self._stopped = stopped
        return _STOPPED if stopped else _CONTINUED

    def resumed(self) -> None:
        self._stopped = False

    def wait(self) -> None:
        patience = time.monotonic() + _END_SECONDS
        while self._ended is None and time.monotonic() < patience:
            self.news()
            time.sleep(0.002)


def _state(pid: int) -> str:
    """One letter, as in ps; empty when there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as stat:
            return stat.read(512).rpartition(b")")[2].split()[0].decode()
    except (OSError, IndexError):
        return ""
