"""Runs a Triton module's host code with no GPU and compiles what it launches. Runs only in the compiling child.

Tensors have shapes but no values (torch's FakeTensor), and Triton's own launch path is kept: it gets a driver that
loads nothing and writes down each launch. So heuristics, specialisation and limits are exactly Triton's.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import importlib.util
import inspect
import json
import operator
import os
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
import triton
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from triton.backends.compiler import GPUTarget

from presage.kernels import cubin, static_triton, submission, walk

_NEEDS_VALUES = ("DataDependentOutputException", "DynamicOutputShapeException", "UnsupportedFakeTensorException")
_NEEDS_GPU = ("Torch not compiled with CUDA", "no fake impl or Meta kernel", "arguments from the 'CUDA' backend")
_FILE = "kernel.py"
_FREE_OPERATORS = ("empty", "new_empty", "detach", "alias", "lift_fresh", "_local_scalar_dense", "prim::")


class Recorder:
    """A driver for Triton that launches nothing."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        major, minor = request["capability"]
        device = request["device"]
        self.target = GPUTarget("cuda", major * 10 + minor, 32)
        self.cubins: list[bytes] = []
        self.launches: Counter[str] = Counter()
        self.notes: dict[str, None] = {}
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
        self._listening, self._found, self._tuned = True, False, False

    def begin_case(self) -> None:
        self.launches.clear()
        self.notes.clear()

    def begin_tuning(self) -> None:
        """Of a kernel for another key: the configuration that was found is no longer the one."""
        self._found = False

    def without_listening(self, call: Callable[[], Any]) -> None:
        """Call what is not part of the kernel's own work."""
        before, self._listening = self._listening, False
        try:
            call()
        finally:
            self._listening = before

    def get_current_target(self) -> GPUTarget:
        return self.target

    def get_active_torch_device(self) -> Any:
        return torch.device("cuda", 0)

    def get_device_interface(self) -> Any:
        return torch.cuda

    def get_empty_cache_for_benchmark(self) -> Any:
        return torch.empty(1, device="cuda")

    def get_benchmarker(self) -> Callable[..., Any]:
        """Autotuning takes the first configuration that can be launched; nothing can be timed here."""

        def benchmark(call: Callable[[], Any], **_: Any) -> list[float]:
            if self._found:
                return [1.0, 1.0, 1.0]
            self.without_listening(call)
            self._found = self._tuned = True
            return [0.0, 0.0, 0.0]

        return benchmark

    def _load(self, name: str, binary: bytes, shared: int, device: int) -> tuple[Any, int, int, int, int]:
        if binary not in self.cubins:
            self.cubins.append(binary)
        resources = cubin.read(binary)[name]
        return self, self.cubins.index(binary), resources.registers, 0, 1024

    def launcher_cls(self, source: Any, metadata: Any) -> Callable[..., None]:
        def launch(x: int, y: int, z: int, stream: int, function: int, *rest: Any) -> None:
            grid = [operator.index(size) for size in (x, y, z)]
            for value in rest:
                if isinstance(value, torch.Tensor) and value.device.type != "cuda":
                    raise ValueError("a tensor in the host's memory cannot be passed to a Triton kernel")
            if not self._listening or 0 in grid:
                return
            if self._tuned:
                self.notes["autotuned: the first configuration that fits was taken"] = None
            threads = cubin.read(self.cubins[function])[metadata.name].required_threads
            entry = {
                "name": metadata.name,
                "grid": grid,
                "threads": threads,
                "shared": metadata.shared,
                "cubin": function,
                "options": {
                    "num_warps": metadata.num_warps,
                    "num_stages": metadata.num_stages,
                    "num_ctas": getattr(metadata, "num_ctas", 1),
                    "constants": _constants(source),
                    "arguments": _arguments(source),
                },
                "values": _values(source, rest),
            }
            self.launches[json.dumps(entry)] += 1

        return launch


class _Operators(TorchDispatchMode):  # type: ignore[misc]
    """Counts the framework's operators that would do work on the device."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func._schema.name.removeprefix("aten::")
        if not func.is_view and not name.startswith(_FREE_OPERATORS):
            self.counts[name] += 1
        return func(*args, **(kwargs or {}))


def warm_up() -> None:
    """Do once what torch does at the first operator on a tensor without values, and Triton at the first kernel: they
    import some 900 modules, and Triton hashes itself."""
    with FakeTensorMode():
        torch.empty(1).add(1)
    for name in static_triton.IMPORTED_LATE:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    triton.runtime.cache.triton_key()


def run(request: Mapping[str, Any]) -> dict[str, Any]:
    """Import the module, call it on tensors without values, and hand back every distinct launch of each case, compiled.
    Cases follow each other in one process, so that Triton compiles what they share only once."""
    recorder, fakes = Recorder(request), FakeTensorMode(allow_non_fake_inputs=True)
    triton.runtime.driver.set_active(recorder)
    _pretend_cuda(request, recorder)
    try:
        with fakes, _WithoutGpu():
            reference = _Reference(request["files"]) if request["files"] else None
            call = _entry(_module(request["source"]), reference)
    except BaseException as error:
        return {"status": _status(error), "error": _explain(error)}
    cases = [[case, _run_case(call, reference, case, recorder, fakes)] for case in request["cases"]]
    return {"status": "ok", "cases": cases}


def _run_case(
    call: Callable[..., Any],
    reference: _Reference | None,
    case: Mapping[str, Any],
    recorder: Recorder,
    fakes: FakeTensorMode,
) -> dict[str, Any]:
    recorder.begin_case()
    operators = _Operators()
    try:
        with fakes, operators, _WithoutGpu():
            data = reference.data(case["arguments"]) if reference else _data(case)
            operators.counts.clear()
            call(data)
    except BaseException as error:
        return {"status": _status(error), "error": _explain(error), "notes": list(recorder.notes)}
    if not recorder.launches:
        recorder.notes["the host code launched no Triton kernel"] = None
    return {
        "status": "ok",
        "cubins": [base64.b64encode(each).decode() for each in recorder.cubins],
        "launches": [_launch(recorder, json.loads(entry), count) for entry, count in recorder.launches.items()],
        "operators": dict(operators.counts),
        "notes": list(recorder.notes),
    }


def _launch(recorder: Recorder, entry: dict[str, Any], count: int) -> dict[str, Any]:
    text, options = _ptx(entry["name"], recorder.cubins[entry["cubin"]]), entry["options"]
    block = (entry["threads"] or 32 * options["num_warps"], 1, 1)
    values = entry.pop("values")
    walked = walk.of_call(text, entry["name"], values, entry["grid"], block) if values is not None else None
    return {**entry, "count": count, "executed": walked}


def _ptx(name: str, binary: bytes) -> str:
    """The text that a cubin was made from, which Triton's cache keeps beside it."""
    for file in Path(os.environ["TRITON_CACHE_DIR"]).glob(f"*/{name}.cubin"):
        if file.read_bytes() == binary:
            return file.with_suffix(".ptx").read_text()
    return ""


def _values(source: Any, rest: tuple[Any, ...]) -> list[int | None] | None:
    """Each run-time argument that is an integer, None for others; None where some are passed as more than one value."""
    kinds = list(source.signature.values())
    if "tensordesc" in str(kinds) or len(rest) < len(kinds):
        return None
    found: list[int | None] = []

    def add(kind: Any, value: Any) -> None:
        if isinstance(kind, tuple | list):
            for each in zip(kind, value, strict=True):
                add(*each)
        elif kind != "constexpr":
            found.append(int(value) if kind[0] in "iu" and isinstance(value, int) else None)

    for each in zip(kinds, rest[-len(kinds) :], strict=True):
        add(*each)
    return found


def _module(source: str) -> ModuleType:
    path = Path(tempfile.mkdtemp(), _FILE)
    path.write_text(source, encoding="utf-8")
    submission.provide_types()
    return _imported(path, "kernel_module")


def _imported(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _entry(module: ModuleType, reference: _Reference | None) -> Callable[[Any], Any]:
    if hasattr(module, "custom_kernel"):
        return module.custom_kernel  # type: ignore[no-any-return]
    if not hasattr(module, "ModelNew"):
        raise AttributeError("the module defines neither custom_kernel(data) nor ModelNew")
    initial = reference.initial if reference else getattr(module, "get_init_inputs", tuple)
    with torch.device("cuda"):
        model = module.ModelNew(*initial())
    return lambda data: model(*data)


def _data(case: Mapping[str, Any]) -> tuple[Any, ...]:
    inputs = [torch.empty(shape, dtype=getattr(torch, dtype), device="cuda") for shape, dtype in case["inputs"]]
    return (*inputs, *case["parameters"])


class _ReferenceFailedError(Exception):
    """It is not the kernel's fault."""


class _Reference:
    """The reference of a problem from elsewhere, which makes its inputs here without values."""

    def __init__(self, files: Mapping[str, str]) -> None:
        folder = tempfile.mkdtemp()
        for name, text in files.items():
            Path(folder, name).write_text(text, encoding="utf-8")
        sys.path.insert(0, folder)
        self._module = self._ask(lambda: _imported(Path(folder, "reference.py"), "reference"))

    def initial(self) -> Any:
        """What a KernelBench model is built from."""
        return self._ask(self._module.get_init_inputs)

    def data(self, arguments: Mapping[str, Any]) -> Any:
        """Of one call: as GPU MODE's generator makes it, or KernelBench's, whose tensors its users then move."""
        generate = getattr(self._module, "generate_input", None)
        if generate is None:
            return tuple(x.cuda() if isinstance(x, torch.Tensor) else x for x in self._ask(self._module.get_inputs))
        seed = {"seed": 1} if "seed" in inspect.signature(generate).parameters else {}
        return self._ask(lambda: generate(**arguments, **seed))

    def _ask(self, work: Callable[[], Any]) -> Any:
        try:
            return work()
        except Exception as error:
            raise _ReferenceFailedError(
                f"the problem's reference failed here, where tensors have no values: {type(error).__name__}: {error}"
            ) from error


class _WithoutGpu(TorchFunctionMode):  # type: ignore[misc]
    """What torch's functions cannot do where there is none. Nothing is drawn, so no generator, of whatever device, is
    asked; and numbers get into a tensor on the host first."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = {name: value for name, value in (kwargs or {}).items() if name != "generator"}
        device = named.pop("device", None) if func in (torch.tensor, torch.as_tensor) else None
        made = func(*args, **named)
        return made if device is None else made.to(device)


def _constants(source: Any) -> dict[str, Any]:
    names = list(source.signature)
    return {
        names[path[0]]: value if isinstance(value, int | float | str | None) else repr(value)
        for path, value in source.constants.items()
        if len(path) == 1
    }


def _arguments(source: Any) -> list[dict[str, Any]]:
    """Each run-time argument: its type, and whether Triton may assume that it is a multiple of 16."""
    aligned = {path for path, attributes in source.attrs.items() if ["tt.divisibility", 16] in map(list, attributes)}
    return [
        {"name": name, "type": str(kind), "divisible_by_16": (index,) in aligned}
        for index, (name, kind) in enumerate(source.signature.items())
        if kind != "constexpr"
    ]


def _status(error: BaseException) -> str:
    name = type(error).__name__
    if name == "OutOfResources":
        return "runtime_error"
    if name in _NEEDS_VALUES or isinstance(error, _ReferenceFailedError) or _needs_gpu(error):
        return "unknown"
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    in_compiler = any("/triton/compiler/" in file or "/triton/backends/" in file for file in files)
    return "compile_error" if in_compiler or isinstance(error, SyntaxError | ImportError) else "runtime_error"


def _needs_gpu(error: BaseException) -> bool:
    """Some of torch's operators do not say what they would return: they are tried where there are values."""
    return any(sign in str(error) for sign in _NEEDS_GPU)


def _explain(error: BaseException) -> str:
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, _ReferenceFailedError):
        return str(error)
    if _needs_gpu(error):
        text = f"the host code does what torch cannot do without a GPU ({str(error).splitlines()[0][:200]})"
    if type(error).__name__ in _NEEDS_VALUES:
        text = f"the host code asks for a tensor's value, or a shape that follows from it; here is none ({error})"
    if type(error).__name__ == "OutOfResources":
        return f"cannot launch: {error}"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if os.path.basename(frame.filename) == _FILE]
    if frames and not isinstance(error, SyntaxError):
        text += f"\n  at line {frames[-1].lineno}: {frames[-1].line}"
    return text


class _Event:
    """Of which all happen at once."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.synchronize = self.record = self.wait = lambda *_: None
        self.query, self.elapsed_time = lambda: True, lambda _: 0.0


class _Stream:
    """Of which there is only one."""

    cuda_stream, device_index, device = 0, 0, torch.device("cuda", 0)

    def __init__(self, *_: Any, **__: Any) -> None:
        self.synchronize = self.wait_stream = self.wait_event = lambda *_: None
        self.query, self.record_event = lambda: True, lambda event=None: event or _Event()

    def __enter__(self) -> _Stream:
        return self

    def __exit__(self, *_: Any) -> None:
        return


def _graphs(recorder: Recorder) -> tuple[type, type]:
    """CUDAGraph, which launches when it is replayed what was launched while it was captured; and its context."""

    class Graph:
        def __init__(self, *_: Any, **__: Any) -> None:
            self.launches: Counter[str] = Counter()
            self.pool = self.reset = lambda *_: None

        def capture_begin(self, *_: Any, **__: Any) -> None:
            self._before = recorder.launches.copy()

        def capture_end(self) -> None:
            self.launches = recorder.launches - self._before
            recorder.launches.subtract(self.launches)
            recorder.launches = +recorder.launches

        def replay(self) -> None:
            recorder.launches.update(self.launches)

    class Capture:
        def __init__(self, graph: Graph, *_: Any, **__: Any) -> None:
            self._graph = graph

        def __enter__(self) -> None:
            self._graph.capture_begin()

        def __exit__(self, *_: Any) -> None:
            self._graph.capture_end()

    return Graph, Capture


def _generators() -> type:
    class Generator(torch.Generator):  # type: ignore[misc]
        """Of the GPU, as far as anyone is told."""

        def __new__(cls, device: Any = None) -> Any:
            return super().__new__(cls)

    return Generator


class _Device(contextlib.nullcontext[None]):
    """torch.cuda.device, which torch itself asks for as a class."""


def _move_parameters(module: Any, change: Callable[[Any], Any], recurse: bool = True) -> Any:
    """What torch does to a module's parameters, which it cannot do where they have no values."""
    with torch.no_grad():
        for child in module.children() if recurse else ():
            _move_parameters(child, change)
        for name, found in module._parameters.items():
            if found is not None:
                module._parameters[name] = torch.nn.Parameter(change(found), found.requires_grad)
        for name, found in module._buffers.items():
            module._buffers[name] = None if found is None else change(found)
    return module


def _plain_operator(name: Any, function: Any = None, /, **_: Any) -> Any:
    """An operator of the module's own is the function that it is made from."""

    def made(function: Any) -> Any:
        for registering in ("register_fake", "register_kernel", "register_autograd", "register_vmap"):
            setattr(function, registering, lambda first=None, *_, **__: first if callable(first) else lambda f: f)
        return function

    return made(function) if function else made


def _addresses() -> Callable[[Any], int]:
    """Tensors of different memory lie at different addresses."""
    bases: dict[int, int] = {}

    def data_ptr(tensor: Any) -> int:
        base = bases.setdefault(tensor.untyped_storage()._cdata, (len(bases) + 1) << 36)
        return int(base + tensor.storage_offset() * tensor.element_size())

    return data_ptr


def _pretend_cuda(request: Mapping[str, Any], recorder: Recorder) -> None:
    """Make torch.cuda answer for the target, also where torch was built without CUDA."""
    major, minor = request["capability"]
    device = request["device"]

    class Properties(SimpleNamespace):
        @property
        def multi_processor_count(self) -> int:
            if not device["multiprocessors"]:
                recorder.notes["the host code asks for the number of multiprocessors, and is told 1: name a GPU"] = None
            return device["multiprocessors"] or 1

    properties = Properties(
        name=device["name"],
        major=major,
        minor=minor,
        total_memory=device["memory"],
        L2_cache_size=device["l2"],
        warp_size=32,
        max_threads_per_multi_processor=device["threads_per_sm"],
        regs_per_multiprocessor=65536,
        shared_memory_per_block=48 << 10,
        shared_memory_per_block_optin=device["shared_per_block"],
        shared_memory_per_multiprocessor=device["shared_per_sm"],
        gcnArchName="",
    )
    stream = _Stream()
    answers: dict[str, Any] = {
        "is_available": True,
        "is_initialized": False,
        "device_count": 1,
        "current_device": 0,
        "get_device_properties": properties,
        "get_device_capability": (major, minor),
        "get_device_name": device["name"],
        "current_stream": stream,
        "default_stream": stream,
        "synchronize": None,
        "set_device": None,
        "empty_cache": None,
        "is_current_stream_capturing": False,
        "mem_get_info": (device["memory"], device["memory"]),
        "set_stream": None,
        "stream": contextlib.nullcontext(),
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, lambda *_, answer=answer, **__: answer)
    fake_tensor.init_gpu_context = lambda _: None  # it would look for the GPU that torch.cuda now promises
    torch.cuda.Event, torch.cuda.Stream, torch.cuda.ExternalStream = _Event, _Stream, _Stream
    torch.cuda.device = _Device
    torch.Generator = _generators()
    torch.cuda.CUDAGraph, torch.cuda.graph = _graphs(recorder)
    FakeTensor.data_ptr = _addresses()
    FakeTensor.get_device = lambda self: 0 if self.device.type == "cuda" else -1
    torch.nn.Module._apply = _move_parameters
    torch.library.custom_op = torch.library.triton_op = _plain_operator
    torch.library.wrap_triton = lambda kernel: kernel
    _tune_without_timing(recorder)
    torch.Tensor.to = _move_tensors(torch.Tensor.to)
    torch.Tensor.cuda = lambda self, *_, **__: self.to("cuda")
    torch.nn.Module.cuda = lambda self, *_: self  # its parameters were made there: see _entry
    _register_cuda_guard()


def _tune_without_timing(recorder: Recorder) -> None:
    """Timing, by Triton's autotuner or by the module's own, calls and is told nothing."""

    def do_bench(call: Callable[[], Any], *_: Any, quantiles: Any = None, **__: Any) -> Any:
        recorder.without_listening(call)
        return [0.0] * len(quantiles) if quantiles else 0.0

    triton.testing.do_bench = triton.testing.do_bench_cudagraph = do_bench
    autotuner = importlib.import_module("triton.runtime.autotuner").Autotuner
    prune = autotuner.prune_configs

    def prune_configs(self: Any, *arguments: Any, **named: Any) -> Any:
        recorder.begin_tuning()
        return prune(self, *arguments, **named)

    autotuner.prune_configs = prune_configs


def _move_tensors(to: Callable[..., Any]) -> Callable[..., Any]:
    """Tensor.to, but what moves to the GPU leaves the values behind that torch knows of it because it was made of plain
    numbers: it would compute with them there."""

    def moved(self: Any, *arguments: Any, **named: Any) -> Any:
        arguments = tuple(map(_indexed, arguments))
        named = {name: _indexed(value) for name, value in named.items()}
        known = getattr(self, "constant", None)
        if known is None or torch.device("cuda", 0) not in (*arguments, *named.values()):
            return to(self, *arguments, **named)
        self.constant = None
        try:
            return to(self, *arguments, **named)
        finally:
            self.constant = known

    return moved


def _indexed(argument: Any) -> Any:
    """`cuda` with its number, which there is no runtime to ask for."""
    is_cuda = argument == "cuda" if isinstance(argument, str) else isinstance(argument, torch.device)
    return torch.device("cuda", 0) if is_cuda and torch.device(argument).type == "cuda" else argument


def _register_cuda_guard() -> None:
    """Without a guard for CUDA devices, a torch built for the CPU cannot index or copy its own fake CUDA tensors.

    FakeTensorMode sets a guard that does nothing, but only in builds with CUDA; here the meta device's is borrowed.
    """
    library = os.path.join(os.path.dirname(torch.__file__), "lib", "libc10.so")
    with contextlib.suppress(OSError, ValueError):
        registry = (ctypes.c_void_p * 16).in_dll(ctypes.CDLL(library), "_ZN3c104impl26device_guard_impl_registryE")
        cuda, meta = 1, 14
        if not registry[cuda]:
            registry[cuda] = registry[meta]
