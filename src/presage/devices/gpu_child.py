"""GpuChild: a worker forked from the zygote, with a context on the GPU from before its sandbox closed."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from typing import Any

from presage.core import machine
from presage.devices.child import Child
from presage.devices.zygote import Zygote
from presage.kernels import toolkit

_MEMORY_BYTES = min(32 << 30, machine.memory())
_FILE_BYTES = 1 << 30
_END_SECONDS = 30.0
_COMPILERS = ("CC", "CXX", "NVCC_CCBIN", "TRITON_LIBCUDA_PATH", "TRITON_PTXAS_PATH")
"""By which the caller may have said where compilers and their libraries are."""
_STOPPED, _CONTINUED = signal.SIGSTOP << 8 | 0x7F, 0xFFFF


class GpuChild(Child):
    """The same protocol as any child; its arena is given to it when it enters the lane."""

    def __init__(self, zygote: Zygote, ground: dict[str, Any], with_torch: bool) -> None:
        self._zygote, self._ground = zygote, ground | {"torch": with_torch}
        super().__init__(spawn=self._fork, memory_bytes=_MEMORY_BYTES, file_bytes=_FILE_BYTES)

    @property
    def is_gone(self) -> bool:
        return _state(self._process.pid) in ("", "Z", "X")

    def _fork(self, settings: dict[str, Any], descriptors: tuple[int, int, int]) -> ForkedProcess:
        """It finds what a module needs that builds an extension: ninja, which comes with a Python, and nvcc."""
        home, named = toolkit.home(), {name: os.environ[name] for name in _COMPILERS if name in os.environ}
        found = named | ({"CUDA_HOME": str(home)} if home else {})
        folders = (os.path.dirname(sys.executable), *([f"{home}/bin"] if home else []), os.environ.get("PATH", ""))
        settings["gpu"] = self._ground
        settings["readable"] += [*_places(found), *os.environ.get("LD_LIBRARY_PATH", "").split(":")]
        settings["environment"] = {
            **settings["environment"],
            **found,
            "PATH": ":".join((*folders, settings["environment"]["PATH"])),
            "TORCHINDUCTOR_COMPILE_THREADS": "1",
            "TRITON_CACHE_DIR": os.path.join(self.scratch, "triton"),
            "TORCH_EXTENSIONS_DIR": os.path.join(self.scratch, "extensions"),
            "TORCHINDUCTOR_CACHE_DIR": os.path.join(self.scratch, "inductor"),
        }
        return ForkedProcess(self._zygote, self._zygote.fork(settings, descriptors))


def _places(found: dict[str, str]) -> list[str]:
    """Where what these name lies, and the compilers that are on the path, with a compiler's own parts beside them."""
    programs = [shutil.which(name) for name in ("c++", "cc", *found.values())]
    homes = {os.path.dirname(os.path.dirname(os.path.realpath(program))) for program in programs if program}
    parts = [os.path.join(home, part) for home in homes for part in ("bin", "include", "lib", "lib64", "libexec")]
    return [*parts, *(path for path in found.values() if os.path.isabs(path))]


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
