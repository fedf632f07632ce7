"""Compiles what a Triton module launches and writes each launch down.

Tensors have shapes but no values (torch's FakeTensor), and Triton's own launch path is kept: it gets a driver that
loads nothing and writes down each launch. So heuristics, specialisation and limits are exactly Triton's.
"""

from __future__ import annotations

import base64
import contextlib
import importlib
import json
import operator
import os
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import triton
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from triton.backends.compiler import GPUTarget

from presage.static import cubin, triton_module, walk
from presage.static.tracing import host_code, pretended_gpu

_NEEDS_VALUES = ("DataDependentOutputException", "DynamicOutputShapeException", "UnsupportedFakeTensorException")
_NEEDS_GPU = ("Torch not compiled with CUDA", "no fake impl or Meta kernel", "arguments from the 'CUDA' backend")
_FREE_OPERATORS = ("empty", "new_empty", "detach", "alias", "lift_fresh", "_local_scalar_dense", "prim::")


class LaunchTracer:
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
    for name in triton_module.IMPORTED_LATE:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    triton.runtime.cache.triton_key()


def run(request: Mapping[str, Any]) -> dict[str, Any]:
    """Import the module, call it on tensors without values, and hand back every distinct launch of each case, compiled.
    Cases follow each other in one process, so that Triton compiles what they share only once."""
    tracer, fakes = LaunchTracer(request), FakeTensorMode(allow_non_fake_inputs=True)
    triton.runtime.driver.set_active(tracer)
    pretended_gpu.pretend(request, tracer)
    try:
        with fakes, pretended_gpu.WithoutGpu():
            reference = host_code.InputMaker(request["files"]) if request["files"] else None
            call = host_code.entry(host_code.load(request["source"]), reference)
    except BaseException as error:
        return {"status": _status(error), "error": _explain(error)}
    cases = [[case, _run_case(call, reference, case, tracer, fakes)] for case in request["cases"]]
    return {"status": "ok", "cases": cases}


def _run_case(
    call: Callable[..., Any],
    reference: host_code.InputMaker | None,
    case: Mapping[str, Any],
    tracer: LaunchTracer,
    fakes: FakeTensorMode,
) -> dict[str, Any]:
    tracer.begin_case()
    operators = _Operators()
    try:
        with fakes, operators, pretended_gpu.WithoutGpu():
            data = reference.data(case["arguments"]) if reference else host_code.data_of(case)
            operators.counts.clear()
            call(data)
    except BaseException as error:
        return {"status": _status(error), "error": _explain(error), "notes": list(tracer.notes)}
    if not tracer.launches:
        tracer.notes["the host code launched no Triton kernel"] = None
    return {
        "status": "ok",
        "cubins": [base64.b64encode(each).decode() for each in tracer.cubins],
        "launches": [_launch(tracer, json.loads(entry), count) for entry, count in tracer.launches.items()],
        "operators": dict(operators.counts),
        "notes": list(tracer.notes),
    }


def _launch(tracer: LaunchTracer, entry: dict[str, Any], count: int) -> dict[str, Any]:
    text, options = _ptx(entry["name"], tracer.cubins[entry["cubin"]]), entry["options"]
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
    if name in _NEEDS_VALUES or isinstance(error, host_code.ReferenceFailedError) or _needs_gpu(error):
        return "unknown"
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    in_compiler = any("/triton/compiler/" in file or "/triton/backends/" in file for file in files)
    return "compile_error" if in_compiler or isinstance(error, SyntaxError | ImportError) else "runtime_error"


def _needs_gpu(error: BaseException) -> bool:
    """Some of torch's operators do not say what they would return: they are tried where there are values."""
    return any(sign in str(error) for sign in _NEEDS_GPU)


def _explain(error: BaseException) -> str:
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, host_code.ReferenceFailedError):
        return str(error)
    if _needs_gpu(error):
        text = f"the host code does what torch cannot do without a GPU ({str(error).splitlines()[0][:200]})"
    if type(error).__name__ in _NEEDS_VALUES:
        text = f"the host code asks for a tensor's value, or a shape that follows from it; here is none ({error})"
    if type(error).__name__ == "OutOfResources":
        return f"cannot launch: {error}"
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if os.path.basename(frame.filename) == host_code.FILE
    ]
    if frames and not isinstance(error, SyntaxError):
        text += f"\n  at line {frames[-1].lineno}: {frames[-1].line}"
    return text
