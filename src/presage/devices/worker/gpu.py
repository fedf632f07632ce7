"""The child's side of a GPU: runs calls on the parent's memory, and times them.

A call is queued behind the lead, a kernel that holds the GPU and evicts the cache, and is timed by events. A foreign
module could change everything in this process, so the parent times many calls by its own clock, and believes no shorter
time.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import sys
import time
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from typing import Any

from presage.devices.worker import tensors
from presage.devices.worker.examiner import ExaminerRunner
from presage.devices.worker.module import load_candidate
from presage.devices.worker.triton_launches import NoLaunches
from presage.static.trace import overlaps

_PERSISTING_L2_LIMIT = 0x06  # CU_LIMIT_PERSISTING_L2_CACHE_SIZE
_MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_POISON = 0xA5
_PAGE = 2 << 20


class GpuError(RuntimeError):
    """The driver refused a call or reported a fault. The message is the driver's name for it."""


class Gpu:
    """A context on the first GPU, opened before the sandbox closes."""

    def __init__(self, settings: dict[str, Any]) -> None:
        from cuda.bindings import driver

        self.driver = driver
        self(driver.cuInit(0))
        device = self(driver.cuDeviceGet(0))
        self(driver.cuCtxSetCurrent(self(driver.cuDevicePrimaryCtxRetain(device))))
        module = self(driver.cuModuleLoadData(bytes.fromhex(settings["lead"])))
        self._lead = self(driver.cuModuleGetFunction(module, b"lead"))
        self._shared, self._blocks = settings["shared"], settings["multiprocessors"]
        self.dynamic_shared = driver.CUfunction_attribute(_MAX_DYNAMIC_SHARED)
        self(driver.cuFuncSetAttribute(self._lead, self.dynamic_shared, self._shared))
        self._flush_bytes = settings["flush_bytes"]
        self._flush = int(self(driver.cuMemAlloc(self._flush_bytes)))
        self._lead_state, self._leads = int(self(driver.cuMemAlloc(64))), 0
        self(driver.cuMemsetD8(self._lead_state, 0, 64))
        self._events = [self(driver.cuEventCreate(0)) for _ in range(2)]
        self._persisting = driver.CUlimit(_PERSISTING_L2_LIMIT)
        self._record = driver.cuEventRecord
        self._set_byte = driver.cuMemsetD8
        self._wait = driver.cuEventSynchronize
        self._elapsed = driver.cuEventElapsedTime
        self._synchronise = driver.cuCtxSynchronize
        self._launch = driver.cuLaunchKernel
        self._set_limit = driver.cuCtxSetLimit
        self._reset_persisting = driver.cuCtxResetPersistingL2Cache
        asked = (self._set_limit(self._persisting, 0), self._reset_persisting())
        self._persists = all(int(code) == 0 for code, *_ in asked)  # older GPUs and parts of a GPU do not support this
        self._clock = time.perf_counter_ns
        self.arena, self._arena_handle = 0, ""
        if settings["torch"]:
            _wake_libraries()

    def load(self, command: dict[str, Any]) -> Any:
        if command["kind"] == "replay":
            from presage.devices.worker.replay import ReplayRunner

            return ReplayRunner(command, self)
        kinds = {"cuda": CudaRunner, "torch": TorchRunner, "examiner": GpuExaminer, "null": IdleRunner}
        return kinds[command["kind"]](command, self)

    def __call__(self, result: Any) -> Any:
        """Return the value of a driver call. Raises GpuError if the call failed."""
        code, *values = result
        if int(code):
            raise GpuError(code.name)
        return values[0] if values else None

    def open_arena(self, handle: str) -> None:
        """Map the parent's GPU memory, which holds inputs and outputs."""
        if handle == self._arena_handle:
            return
        if self.arena:
            closing, self.arena, self._arena_handle = self.arena, 0, ""
            self(self.driver.cuIpcCloseMemHandle(closing))
        self.arena, self._arena_handle = self.mapped(handle), handle

    def mapped(self, handle: str) -> int:
        """Map memory that another process shares. Returns its address in this process."""
        ipc = self.driver.CUipcMemHandle()
        ipc.reserved = bytes.fromhex(handle)
        return int(self(self.driver.cuIpcOpenMemHandle(ipc, 1)))

    def lead(self, hold_ns: int) -> None:
        self._leads += 1
        values = (self._flush, self._flush_bytes // 16, hold_ns, self._lead_state, self._leads)
        types = (ctypes.c_void_p, ctypes.c_ulonglong, ctypes.c_longlong, ctypes.c_void_p, ctypes.c_ulonglong)
        self(self._launch(self._lead, self._blocks, 1, 1, 1024, 1, 1, self._shared, 0, (values, types), 0))

    def write(self, size: int) -> None:
        """Write this many bytes to memory that is not used otherwise."""
        for begin in range(0, size, self._flush_bytes):
            self.fill(self._flush, min(self._flush_bytes, size - begin))

    def fill(self, address: int, size: int) -> None:
        if size:
            self(self.driver.cuMemsetD8Async(address, 0, size, 0))

    def timed(self, call: Any, slot: Any, collect: Any, hold_ns: int) -> tuple[float, int, int]:
        """Run one call behind a lead. Returns, in nanoseconds, how long it ran, how long it took to queue, and how long
        the GPU went on after the call's own stream had finished."""
        if self._persists:
            self(self._set_limit(self._persisting, 0))
            self(self._reset_persisting())
        start, end = self._events
        self.lead(hold_ns)
        self(self._record(start, 0))
        queued = self._clock()
        result = call(slot)
        self(self._record(end, 0))
        queued = self._clock() - queued
        self(self._wait(end))
        tail = self._clock()
        self(self._synchronise())
        tail = self._clock() - tail
        collect(result, slot)
        self(self._synchronise())
        return self(self._elapsed(start, end)) * 1e6, queued, tail

    def window(self, call: Any, slots: list[Any], collect: Any, command: dict[str, Any]) -> dict[str, Any]:
        """Time the calls one by one, or only make them if the command has no `hold_ns`."""
        if "hold_ns" not in command:
            self._run(call, slots, collect, command)
            return {"ns": 0}
        timings = [self.timed(call, slot, collect, command["hold_ns"]) for slot in slots]
        return {
            "ns": int(sum(sample for sample, _, _ in timings)),
            "samples_ns": [sample for sample, _, _ in timings],
            "queued_ns": [queued for _, queued, _ in timings],
            "tails_ns": [tail for _, _, tail in timings],
        }

    def _run(self, call: Any, slots: list[Any], collect: Any, command: dict[str, Any]) -> None:
        """Make the calls `repeats` times without timing them. `paced`: wait for each call. `collects`: copy its outputs
        to where the parent looks for them."""
        paced, collects = command["paced"], command["collects"]
        self(self._set_byte(self._flush, 0, 1))  # makes the GPU switch to this process, in every window alike
        for slot in slots * command["repeats"]:
            result = call(slot)
            if paced:
                self(self._synchronise())
            if collects:
                collect(result, slot)
            if paced:
                self(self._synchronise())
        self(self._synchronise())


def _wake_libraries() -> None:
    """Make the first calls of torch and its libraries here, so that their initialisation does not take place in the
    lane."""
    import torch

    small = torch.ones(1, 1, 8, 8, device="cuda")
    with contextlib.suppress(RuntimeError):  # a missing library does no harm
        torch.matmul(small, small)
        torch.conv2d(small, small)
    torch.cuda.synchronize()


class GpuRunner:
    """The base class of all runners on a GPU."""

    _gpu: Gpu

    def open_arena(self, command: dict[str, Any]) -> None:
        self._gpu.open_arena(command["handle"])


class CudaRunner(GpuRunner):
    """Bare `.cu` kernels: compiled by NVRTC in this process, launched as the header says."""

    def __init__(self, command: dict[str, Any], gpu: Gpu) -> None:
        from presage.static import nvrtc

        self._gpu = gpu
        with open(command["path"]) as file:
            compiled = nvrtc.compile(file.read(), **command["compiler"])
        self._module = gpu(gpu.driver.cuModuleLoadData(compiled.cubin))
        self._functions = [
            gpu(gpu.driver.cuModuleGetFunction(self._module, entry.encode())) for entry in command["entries"]
        ]
        self._scratch: list[int] = []

    def close(self, command: dict[str, Any]) -> None:
        self._free()
        self._gpu(self._gpu.driver.cuModuleUnload(self._module))

    def _free(self) -> None:
        for pointer in self._scratch:
            self._gpu(self._gpu.driver.cuMemFree(pointer))
        self._scratch = []

    def lay_out(self, layout: dict[str, Any]) -> None:
        gpu, driver = self._gpu, self._gpu.driver
        self._free()
        for size in layout["scratch"]:
            pointer = int(gpu(driver.cuMemAlloc(max(16, size))))
            gpu(driver.cuMemsetD8(pointer, _POISON, max(16, size)))
            self._scratch.append(pointer)
        self._launches = layout["launches"]
        for function, launch in zip(self._functions, self._launches, strict=True):
            if launch["shared"]:  # together with static shared memory it may exceed the default limit
                gpu(driver.cuFuncSetAttribute(function, gpu.dynamic_shared, launch["shared"]))
        scalars = layout["scalars"]
        types = (
            (ctypes.c_void_p,) * len(layout["slots"][0])
            + (ctypes.c_int,) * len(scalars)
            + (ctypes.c_void_p,) * len(self._scratch)
        )
        self._slots = [
            ((*(gpu.arena + offset for offset in slot), *scalars, *self._scratch), types) for slot in layout["slots"]
        ]

    def _call(self, arguments: Any) -> None:
        for function, launch in zip(self._functions, self._launches, strict=True):
            self._gpu(
                self._gpu.driver.cuLaunchKernel(
                    function, *launch["grid"], *launch["block"], launch["shared"], 0, arguments, 0
                )
            )

    def run(self, command: dict[str, Any]) -> dict[str, Any]:
        return self._gpu.window(self._call, self._slots, lambda result, arguments: None, command)


@dataclass(frozen=True)
class Slot:
    """One call: its data, the tensors in the data in order, the offsets of its outputs, and the addresses of inputs
    that are not outputs."""

    data: Any
    views: list[Any]
    offsets: list[int]
    inputs: list[range]


class TensorRunner(GpuRunner):
    """Calls a function on tensors in the arena. The outputs of a call are copied to the arena and described.

    The torch functions that this class needs are looked up before foreign code is loaded, so a module that replaces
    them changes nothing here.
    """

    def __init__(self, gpu: Gpu) -> None:
        import torch

        self._torch, self._gpu, self._tensor = torch, gpu, torch.Tensor
        self._copy = gpu.driver.cuMemcpyDtoDAsync
        self._base, self._plainly = torch._C.TensorBase, torch._C.DisableTorchFunction
        self._slots: list[Slot] = []

    def _call(self, slot: Slot) -> Any:
        raise NotImplementedError

    def lay_out(self, layout: dict[str, Any]) -> None:
        self._outputs, inputs = layout["outputs"], layout["inputs"]
        self._any_order, self._overlapping = layout.get("any_order", False), layout.get("overlapping", [])
        self._described: list[Any] = []
        self._slots = []
        for slot in layout["slots"]:
            views = [self._view(offset, array) for offset, array in zip(slot, inputs, strict=False)]
            kept = [
                range(self._gpu.arena + offset, self._gpu.arena + offset + tensors.size_of(array, self._torch))
                for offset, array in zip(slot, inputs, strict=False)
                if not array.get("written")
            ]
            data = tensors.arrange(layout, views, self._torch)
            self._slots.append(Slot(data, views, slot[len(inputs) :], kept))

    def _view(self, offset: int, array: dict[str, Any]) -> Any:
        """A tensor over the arena's memory."""
        memory = tensors.gpu_bytes(self._gpu.arena + offset, tensors.size_of(array, self._torch), self._torch)
        return tensors.over(memory, array, self._torch)

    def _blank(self, array: dict[str, Any]) -> Any:
        memory = self._torch.zeros(tensors.size_of(array, self._torch), dtype=self._torch.uint8, device="cuda")
        return tensors.over(memory, array, self._torch)

    def _collect(self, result: Any, slot: Slot) -> None:
        """Copy the returned tensors to where the parent looks for them, and describe them."""
        parts = list(result) if type(result) in (tuple, list) else [result]
        described = []
        with self._plainly():
            for part, expected, offset, may_overlap in zip_longest(
                parts, self._outputs, slot.offsets, self._overlapping
            ):
                description, whole = self._describe(part), part
                if description.get("contiguous") is False and self._may_have_gaps(part, may_overlap):
                    whole, description["contiguous"] = self._base.contiguous(part), True
                if description == expected:
                    size = self._base.nbytes.__get__(whole)
                    self._gpu(self._copy(self._gpu.arena + offset, self._base.data_ptr(whole), size, 0))
                    pointer = self._base.data_ptr(part)
                    description["is_input"] = any(pointer in addresses for addresses in slot.inputs)
                    description["stride"] = list(self._base.stride(whole))
                described.append(description)
        self._described.append(described[: len(parts)])

    def _may_have_gaps(self, part: Any, may_overlap: bool) -> bool:
        """Whether a tensor that is not dense is accepted. One whose elements share memory has still to be written."""
        shape, stride = list(self._base.shape.__get__(part)), self._base.stride(part)
        return self._any_order and (may_overlap or not overlaps(shape, stride))

    def _describe(self, part: Any) -> dict[str, Any]:
        """Describe a returned object. The properties are read through torch's base class. A module cannot override them
        there to do its work only when they are read."""
        if type(part) is not self._tensor:
            return {"type": f"{type(part).__module__}.{type(part).__qualname__}"}
        base, shape = self._base, list(self._base.shape.__get__(part))
        whole = base.is_contiguous(part) or (self._any_order and tensors.is_dense(shape, base.stride(part)))
        return {
            "type": "torch.Tensor",
            "dtype": str(base.dtype.__get__(part)).removeprefix("torch."),
            "shape": shape,
            "contiguous": bool(whole),
            "on_gpu": bool(base.is_cuda.__get__(part)),
        }

    def run(self, command: dict[str, Any]) -> dict[str, Any]:
        self._described = []
        answer = self._gpu.window(self._call, self._slots, self._collect, command)
        return answer | {"outputs": self._described}


class IdleRunner(TensorRunner):
    """Calls nothing and returns existing outputs, so that its windows show what a window itself costs. If the layout
    has `writes`, a call writes that many bytes and then its outputs, and serves as a control call of known length."""

    def __init__(self, command: dict[str, Any], gpu: Gpu) -> None:
        super().__init__(gpu)
        self._ready: tuple[Any, ...] = ()
        self._writes: int | None = None

    def lay_out(self, layout: dict[str, Any]) -> None:
        super().lay_out(layout)
        self._ready = tuple(self._blank(array) for array in layout["outputs"])
        self._writes = layout.get("writes")

    def _call(self, slot: Slot) -> Any:
        if self._writes is not None:
            self._gpu.write(self._writes)
            for part in self._ready:
                self._gpu.fill(part.data_ptr(), part.nbytes)
        return self._ready


class TorchRunner(TensorRunner):
    """Calls modules in Triton or PyTorch. The steps of a call can be recorded."""

    def __init__(self, command: dict[str, Any], gpu: Gpu) -> None:
        super().__init__(gpu)
        self._torch.set_grad_enabled(False)
        self._block = 0
        self._recorder: Any = None
        self._kernels: Any = None
        if command.get("records"):
            from presage.static.tracing import on_gpu
            from presage.static.tracing.recorder import Recorder

            self._recorder = Recorder(has_gpu=True)
            self._kernels = on_gpu.install(self._recorder, gpu.driver)
            self._recorder.__enter__()  # it must see how the module's tensors are made
        self._load, self._whole = partial(load_candidate, command, "cuda"), tensors.completing(self._torch)
        self._function: Any = self._load()

    def close(self, command: dict[str, Any]) -> None:
        self._function, self._slots = None, []
        self._torch.cuda.empty_cache()

    def prepare(self, command: dict[str, Any]) -> None:
        """Call the module once for every shape without launching its own kernels. They are compiled and loaded, and
        Triton's autotuners are reset. With `anew` the module is then loaded again, because a module that chooses among
        variants by their times has chosen by times that mean nothing."""
        cudnn = self._torch.backends.cudnn
        held_back = self._kernels.held_back() if self._kernels else contextlib.nullcontext()
        chooses, cudnn.benchmark = cudnn.benchmark, False
        try:
            with NoLaunches(self._torch.cuda.is_current_stream_capturing), held_back:
                self.call_ahead(command)
        finally:
            cudnn.benchmark = chooses
        if command.get("anew"):
            self._function = None
            sys.modules.pop("candidate", None)
            gc.collect()  # frees the module, its functions, which refer to each other, and their data
            self._function = self._load()
        self._torch.cuda.empty_cache()  # other processes need the memory meanwhile

    def call_ahead(self, command: dict[str, Any]) -> None:
        """Call the module once for every shape, so that what compiles at a first call is compiled."""
        if dynamo := sys.modules.get("torch._dynamo"):  # by default it silently gives up after eight shapes
            dynamo.config.recompile_limit = max(64, dynamo.config.recompile_limit)
        for layout in command["layouts"]:
            self._function(tensors.arrange(layout, [self._blank(a) for a in layout["inputs"]], self._torch))
        self._torch.cuda.synchronize()

    def record(self, command: dict[str, Any]) -> dict[str, Any]:
        """Make the one call that is laid out, write its trace to a file, and share the contents of its constants."""
        (slot,) = self._slots
        self._recorder.begin(slot.views)
        try:
            result = self._call(slot)
        except BaseException:
            self._recorder.stop()
            raise
        document, constants = self._recorder.end(result)
        with open(command["path"], "w") as file:
            json.dump(document, file)
        return {"handle": self._shared(document, constants)}

    def _shared(self, document: dict[str, Any], constants: list[Any]) -> str:
        """Copy all constants to one block of memory that another process can open. Returns its handle; empty if there
        are none."""
        from presage.devices.worker.replay import placed
        from presage.static.trace import Trace

        gpu, driver = self._gpu, self._gpu.driver
        self._free_block()
        offsets, size = placed(Trace.from_document(document))
        if not size:
            return ""
        self._block = int(gpu(driver.cuMemAlloc(-(-size // _PAGE) * _PAGE)))
        block = tensors.gpu_bytes(self._block, size, self._torch)
        for offset, content in zip(offsets, constants, strict=True):
            block[offset : offset + content.numel()].copy_(content)
        gpu(driver.cuCtxSynchronize())
        return bytes(gpu(driver.cuIpcGetMemHandle(self._block)).reserved).hex()

    def _free_block(self) -> None:
        if self._block:
            self._gpu(self._gpu.driver.cuMemFree(self._block))
            self._block = 0

    def stop_recording(self, command: dict[str, Any]) -> None:
        self._free_block()
        if self._recorder is not None:
            self._recorder.__exit__(None, None, None)
            self._recorder = None

    def _call(self, slot: Slot) -> Any:
        return self._whole(self._function(slot.data))


class GpuExaminer(GpuRunner, ExaminerRunner):
    """Runs the reference of a problem from elsewhere on the GPU."""

    def __init__(self, command: dict[str, Any], gpu: Gpu) -> None:
        import torch

        self._gpu = gpu
        super().__init__(command, "cuda", lambda offset, size: tensors.gpu_bytes(gpu.arena + offset, size, torch))
