"""A driver for Triton without a GPU: it loads nothing and records each launch.

Triton's own launch path is kept, so heuristics, specialisation and limits are exactly Triton's.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import torch
from triton.backends.compiler import GPUTarget

from presage.core.text import one_line
from presage.static import cubin
from presage.static.trace import Tuned
from presage.static.tracing import triton_launches
from presage.static.tracing.recorder import Recorder


class RecordingDriver:
    """A driver for Triton that launches nothing."""

    def __init__(self, request: Mapping[str, Any], recorder: Recorder) -> None:
        major, minor = request["capability"]
        device = request["device"]
        self.target = GPUTarget("cuda", major * 10 + minor, 32)
        self._recorder = recorder
        self._cubins: list[bytes] = []
        properties = {
            "max_shared_mem": device["shared_per_block"],
            "multiprocessor_count": device["multiprocessors"] or 1,
            "max_num_regs": 65536,
            "warpSize": 32,
            "sm_clock_rate": 1,
            "mem_clock_rate": 1,
            "mem_bus_width": 1,
        }
        self.utils = SimpleNamespace(load_binary=self._load, get_device_properties=lambda device: properties)
        self.get_current_stream = self.get_current_device = lambda *_: 0
        self.set_current_device = self.clear_cache = lambda *_: None
        self.get_device_capability = lambda *_: (major, minor)
        self._first = int(request.get("tuned", 0))
        self._found = False
        self._name, self._configurations = "", list[Any]()
        self._tuned: dict[str, str] = {}
        """The notes on the configurations that were found, by kernel."""
        self.tries: Any = None
        """The configuration that is tried now."""

    def begin_tuning(self, name: str, configurations: list[Any]) -> list[Any]:
        """Another kernel or another key is tuned now. Return its configurations in the order to try them."""
        self._found, self._name, self._configurations = False, name, configurations
        first = self._first % max(1, len(configurations))
        return [*configurations[first:], *configurations[:first]]

    def get_current_target(self) -> GPUTarget:
        return self.target

    def get_active_torch_device(self) -> Any:
        return torch.device("cuda", 0)

    def get_device_interface(self) -> Any:
        return torch.cuda

    def get_empty_cache_for_benchmark(self) -> Any:
        return torch.empty(1, device="cuda")

    def get_benchmarker(self) -> Callable[..., Any]:
        """Return a benchmarker that makes autotuning take the first configuration that is tried and can be launched,
        since nothing can be timed here."""

        def benchmark(call: Callable[[], Any], **_: Any) -> list[float]:
            if self._found:
                return [1.0, 1.0, 1.0]
            with self._recorder.pausing():
                call()
            self._found = True
            if self.tries in self._configurations:
                number, count = self._configurations.index(self.tries), len(self._configurations)
                self._tuned[self._name] = Tuned(self._name, number, count, _described(self.tries)).note()
            return [0.0, 0.0, 0.0]

        return benchmark

    def _load(self, name: str, binary: bytes, shared: int, device: int) -> tuple[Any, int, int, int, int]:
        if binary not in self._cubins:
            self._cubins.append(binary)
        resources = cubin.read(binary)[name]
        return self, self._cubins.index(binary), resources.registers, 0, 1024

    def launcher_cls(self, source: Any, metadata: Any) -> Callable[..., None]:
        def launch(x: int, y: int, z: int, stream: int, function: int, *rest: Any) -> None:
            grid = x, y, z = (operator.index(x), operator.index(y), operator.index(z))
            for value in rest:
                if isinstance(value, torch.Tensor) and value.device.type != "cuda":
                    raise ValueError("a tensor in the host's memory cannot be passed to a Triton kernel")
            if 0 in grid:
                return
            for note in self._tuned.values():
                self._recorder.notes[note] = None
            triton_launches.record(self._recorder, source, metadata, self._cubins[function], grid, rest)

        return launch


def _described(configuration: Any) -> str:
    """A configuration of an autotuner: its constants, warps and stages."""
    values = {**configuration.kwargs, "num_warps": configuration.num_warps, "num_stages": configuration.num_stages}
    return one_line(", ".join(f"{name}: {value}" for name, value in values.items()), 200)
