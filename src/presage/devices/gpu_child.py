"""GpuChild: a worker forked from the zygote, which opens a context on the GPU before its sandbox closes."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Any

from presage.core import machine
from presage.devices.child import Child
from presage.sandbox import processes, rules
from presage.sandbox.processes import ForkedProcess, Task
from presage.sandbox.rules import Rules
from presage.sandbox.zygote import Zygote
from presage.static import inline_cuda, toolkit

_MEMORY_BYTES = min(32 << 30, machine.memory())
_FILE_BYTES = 1 << 30
_COMPILERS = ("CC", "CXX", "NVCC_CCBIN", "TRITON_LIBCUDA_PATH", "TRITON_PTXAS_PATH")
"""Environment variables by which the caller may name compilers and their libraries."""
_SHARING = os.environ.get("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps")
"""The folder of NVIDIA's Multi-Process Service, through which processes may share a GPU."""


class GpuChild(Child):
    """A child on a GPU. It gets its arena when it enters the lane. A system call that the sandbox refuses does not end
    its trial, since it may start compilers at any time."""

    _process: ForkedProcess
    stop_ns = 500_000  # it has thirty threads to stop, and a stop does not interrupt the GPU

    def __init__(self, zygote: Zygote, ground: dict[str, Any], with_torch: bool) -> None:
        self._zygote = zygote
        self._take_place(None, None)
        home, named = toolkit.home(), {name: os.environ[name] for name in _COMPILERS if name in os.environ}
        found = named | ({"CUDA_HOME": str(home)} if home else {})
        libraries = os.environ.get("LD_LIBRARY_PATH", "").split(":")
        ready = inline_cuda.is_ready()
        built = inline_cuda.readable() if ready else ()
        found |= inline_cuda.environment() if ready else {}
        limits = Rules(
            self.scratch,
            (*rules.system_paths(), *_places(found), *filter(None, libraries), *built, _SHARING),
            _MEMORY_BYTES,
            _FILE_BYTES,
            may_spawn=True,
            uses_gpu=True,
            reserves=True,
        )
        self._start(limits, self._environment(found, str(home or "")), {"gpu": ground | {"torch": with_torch}})

    def _environment(self, found: dict[str, str], home: str) -> dict[str, str]:
        """The child's environment, in which modules that build extensions find ninja, which is beside Python, and
        nvcc."""
        plain = rules.environment(self.scratch)
        folders = (os.path.dirname(sys.executable), *([f"{home}/bin"] if home else []), os.environ.get("PATH", ""))
        return {
            **plain,
            **found,
            "PATH": ":".join((*folders, plain["PATH"])),
            "TORCHINDUCTOR_COMPILE_THREADS": "1",
            "TRITON_CACHE_DIR": os.path.join(self.scratch, "triton"),
            "TORCH_EXTENSIONS_DIR": os.path.join(self.scratch, "extensions"),
            "TORCHINDUCTOR_CACHE_DIR": os.path.join(self.scratch, "inductor"),
        }

    def _launch(self, task: Task) -> ForkedProcess:
        assert self._zygote is not None
        return processes.fork(self._zygote, task)

    @property
    def is_gone(self) -> bool:
        return self._process.is_gone


def _places(found: dict[str, str]) -> list[str]:
    """The paths that these variables name, and the folders of the compilers on the path with their own parts."""
    programs = [shutil.which(name) for name in ("c++", "cc", *found.values())]
    homes = {os.path.dirname(os.path.dirname(os.path.realpath(program))) for program in programs if program}
    parts = [os.path.join(home, part) for home in homes for part in ("bin", "include", "lib", "lib64", "libexec")]
    return [*parts, *(path for path in found.values() if os.path.isabs(path))]
