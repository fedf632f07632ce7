"""Tells a recorder, in a process with a GPU, about events that torch's dispatcher does not see: launches of Triton
kernels, CUDA graphs, and waits."""

from __future__ import annotations

import ctypes
import importlib
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils.weak import WeakIdKeyDictionary

from presage.static import inline_cuda
from presage.static.tracing import triton_launches
from presage.static.tracing.cuda_launches import CudaLaunches
from presage.static.tracing.driver_launch import PORTABLE_CLUSTER, starting
from presage.static.tracing.recorder import Recorder


def install(recorder: Recorder, driver: Any) -> LoadedKernels:
    """Install the hooks, for as long as the process lives. `driver` is the driver module of cuda.bindings. Return the
    object that launches the module's own CUDA code."""
    major, minor = torch.cuda.get_device_capability()
    arch = f"sm_{major}{minor}{'a' if major >= 9 else ''}"
    recorder.is_memory = _memory_of(driver)
    kernels = LoadedKernels(driver)
    inline_cuda.install(CudaLaunches(recorder, kernels), target_arch=arch, has_gpu=True)
    _listen_to_triton(recorder)
    _listen_to_graphs(recorder)
    synchronize = torch.cuda.synchronize

    def noted(*args: Any, **named: Any) -> None:
        recorder.sync("synchronize")
        synchronize(*args, **named)

    torch.cuda.synchronize = noted
    return kernels


def _memory_of(driver: Any) -> Callable[[int], bool]:
    kind = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE
    on_device = int(driver.CUmemorytype.CU_MEMORYTYPE_DEVICE)

    def is_memory(address: int) -> bool:
        code, found = driver.cuPointerGetAttribute(kind, address)
        return not int(code) and int(found) == on_device

    return is_memory


def _listen_to_triton(recorder: Recorder) -> None:
    driver = importlib.import_module("triton.runtime").driver.active
    load, launcher_class = driver.utils.load_binary, driver.launcher_cls
    codes: dict[int, bytes] = {}

    def load_binary(name: str, code: bytes, *rest: Any) -> Any:
        loaded = load(name, code, *rest)
        codes[loaded[1]] = code
        return loaded

    def launcher(source: Any, metadata: Any) -> Any:
        made = launcher_class(source, metadata)

        def launch(x: int, y: int, z: int, stream: int, function: int, *rest: Any) -> None:
            if recorder.is_listening and x * y * z:  # otherwise it must cost nothing
                if function in codes:
                    triton_launches.record(recorder, source, metadata, codes[function], (x, y, z), rest)
                else:
                    recorder.lack("it launches a Triton kernel whose machine code is not known")
            made(x, y, z, stream, function, *rest)

        return launch

    driver.utils.load_binary, driver.launcher_cls = load_binary, launcher
    autotuner = importlib.import_module("triton.runtime.autotuner").Autotuner
    bench = autotuner._bench

    def unrecorded(self: Any, *args: Any, **named: Any) -> Any:
        with recorder.pausing():
            return bench(self, *args, **named)

    autotuner._bench = unrecorded


def _listen_to_graphs(recorder: Recorder) -> None:
    kind = torch.cuda.CUDAGraph
    begin, end, replay = kind.capture_begin, kind.capture_end, kind.replay
    captures = WeakIdKeyDictionary()

    def capture_begin(graph: Any, *args: Any, **named: Any) -> None:
        recorder.begin_capture()
        begin(graph, *args, **named)

    def capture_end(graph: Any) -> None:
        captures[graph] = recorder.end_capture()
        end(graph)

    def replayed(graph: Any) -> None:
        if graph in captures:
            recorder.replay(captures[graph])
        else:
            recorder.lack("it replays a CUDA graph whose capture was not seen")
        replay(graph)

    kind.capture_begin, kind.capture_end, kind.replay = capture_begin, capture_end, replayed


class LoadedKernels:
    """Launches kernels from machine code that is given as bytes. Each kernel is loaded once."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        self._functions: dict[tuple[bytes, str], Any] = {}
        self._modules: dict[bytes, Any] = {}
        self._units: dict[int, inline_cuda.Unit] = {}
        self._written: dict[tuple[int, str, int, int], list[int]] = {}
        """What was copied to variables: unit, name, offset and size, and a copy of it where no code was loaded yet."""
        self._holds = False

    @contextmanager
    def held_back(self) -> Iterator[None]:
        """In this context, kernels are loaded but not launched, unless a CUDA graph captures the launch."""
        self._holds = True
        try:
            yield
        finally:
            self._holds = False

    def __call__(self, code: bytes, name: str, how: inline_cuda.Configuration, parameters: Sequence[bytes]) -> None:
        held = [(ctypes.c_char * len(content)).from_buffer_copy(content) for content in parameters]
        pointers = (ctypes.c_void_p * max(1, len(held)))(*(ctypes.addressof(each) for each in held))
        function = self._function(code, name, how)
        if self._holds and not torch.cuda.is_current_stream_capturing():
            return
        self._ask(starting(self._driver, function, how, ctypes.addressof(pointers), how.stream)())

    def write(self, unit: inline_cuda.Unit, name: str, offset: int, source: int, size: int, stream: int) -> None:
        """Copy to a variable, in each piece of the unit's machine code. What is loaded later gets it, too."""
        places = [place + offset for code in unit.codes if (place := self._variable(code, name))]
        if not name.strip("()& ").replace("::", "").isidentifier() or (not places and self._is_loaded(unit)):
            raise inline_cuda.NotSupportedError(f"no variable of the device is known as {name}")
        self._units[id(unit)] = unit
        kept = self._written.setdefault((id(unit), name, offset, size), [])
        if not places:
            kept[:] = kept or [int(self._ask(self._driver.cuMemAlloc(size)))]
        for place in places or kept:
            self._ask(self._driver.cuMemcpyAsync(place, source, size, stream))

    def _is_loaded(self, unit: inline_cuda.Unit) -> bool:
        return any(code.cubin in self._modules for code in unit.codes)

    def _variable(self, code: inline_cuda.DeviceCode, name: str) -> int:
        """A variable's address; 0 if the code is not loaded, or does not have it."""
        module, found = self._modules.get(code.cubin), code.variable(name)
        if module is None or found is None:
            return 0
        return int(self._ask(self._driver.cuModuleGetGlobal(module, found.encode())))

    def _loaded(self, code: bytes, stream: int) -> Any:
        """The module of machine code. Its variables are given what was copied to them before it was loaded."""
        if code in self._modules:
            return self._modules[code]
        self._modules[code] = self._ask(self._driver.cuModuleLoadData(code))
        for (unit, name, offset, size), kept in self._written.items():
            places = {each.cubin: self._variable(each, name) for each in self._units[unit].codes}
            if place := places.pop(code, 0):
                sources = [other + offset for other in places.values() if other] or kept
                self._ask(self._driver.cuMemcpyAsync(place + offset, sources[0], size, stream))
        return self._modules[code]

    def _function(self, code: bytes, name: str, how: inline_cuda.Configuration) -> Any:
        if (code, name) not in self._functions:
            module = self._loaded(code, how.stream)
            self._functions[code, name] = self._ask(self._driver.cuModuleGetFunction(module, name.encode()))
        function = self._functions[code, name]
        if how.shared > 48 << 10:
            attribute = self._driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self._ask(self._driver.cuFuncSetAttribute(function, attribute, how.shared))
        if math.prod(how.cluster) > PORTABLE_CLUSTER:
            attribute = self._driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
            self._ask(self._driver.cuFuncSetAttribute(function, attribute, 1))
        return function

    def _ask(self, result: Any) -> Any:
        code, *values = result
        if int(code):
            raise RuntimeError(f"CUDA error: {code.name}")
        return values[0] if values else None
