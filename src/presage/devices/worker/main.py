"""The child's loop: load one kernel, lay out its arguments, run windows of calls on command, and report how long they
took.

It runs in the same process as foreign code, so the parent does not trust what it reports. The parent checks the outputs
in memory while this process is stopped, and times every window by its own clock.
"""

from __future__ import annotations

import ctypes
import importlib
import mmap
import os
import re
import signal
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

from presage.devices.worker import tensors, wire
from presage.devices.worker.examiner import ExaminerRunner
from presage.devices.worker.module import load_candidate
from presage.sandbox.launch import Gate


class BareRunner:
    """A C function behind a trampoline that loops over argument sets without returning to Python."""

    def __init__(self, command: dict[str, Any], arena: int) -> None:
        self._arena = arena
        trampoline = ctypes.CDLL(command["trampoline"])
        self._window = trampoline.window
        self._window.restype = ctypes.c_longlong
        self._library = ctypes.CDLL(command["library"])
        self._entry = ctypes.cast(getattr(self._library, command["entry"]), ctypes.c_void_p)

    def lay_out(self, layout: dict[str, Any]) -> None:
        flat = [self._arena + offset for slot in layout["slots"] for offset in slot]
        self._pointers = (ctypes.c_void_p * max(1, len(flat)))(*flat)
        self._scalars = (ctypes.c_int * max(1, len(layout["scalars"])))(*layout["scalars"])

    def run(self, command: dict[str, Any]) -> dict[str, Any]:
        return {"ns": self._window(self._entry, self._pointers, command["calls"], self._scalars)}


class ModuleRunner:
    """`custom_kernel(data)`: data is the tuple of inputs, then the problem's parameters; it returns the outputs."""

    def __init__(self, command: dict[str, Any], arena: int) -> None:
        import numpy

        self._numpy, self._array, self._arena = numpy, numpy.ndarray, arena
        self._function = load_candidate(command)

    def lay_out(self, layout: dict[str, Any]) -> None:
        self._outputs: list[Any] = []
        self._data = [
            (
                *(self._view(offset, array) for offset, array in zip(slot, layout["inputs"], strict=True)),
                *layout["parameters"],
            )
            for slot in layout["slots"]
        ]

    def _view(self, offset: int, array: dict[str, Any]) -> Any:
        dtype = self._numpy.dtype(array["dtype"])
        count = 1
        for size in array["shape"]:
            count *= size
        buffer = (ctypes.c_char * (count * dtype.itemsize)).from_address(self._arena + offset)
        return self._numpy.frombuffer(buffer, dtype=dtype).reshape(array["shape"])

    def run(self, command: dict[str, Any], clock: Any = time.perf_counter_ns) -> dict[str, Any]:
        function, data = self._function, self._data[: command["calls"]]
        outputs = self._outputs
        start = clock()
        for arguments in data:
            outputs.append(function(arguments))
        elapsed = clock() - start
        return {"ns": elapsed} | self._returned(outputs)

    def forget(self, command: dict[str, Any]) -> None:
        """Free the outputs of earlier calls before the clocks start, since that can take longer than a call."""
        self._outputs = []

    def _returned(self, outputs: list[Any]) -> dict[str, Any]:
        """Describe each kind of output once, and each output by its kind and address, to save time while the parent's
        clock runs."""
        kinds: dict[Any, int] = {}
        described: list[dict[str, Any]] = []
        found = []
        for output in outputs:
            parts = []
            for part in output if type(output) in (tuple, list) else (output,):
                key, address = self._identify(part) if type(part) is self._array else (type(part), 0)
                kind = kinds.setdefault(key, len(kinds))
                if kind == len(described):
                    described.append(self._describe(part))
                parts.append((kind, address))
            found.append(parts)
        return {"kinds": described, "outputs": found}

    def _describe(self, part: Any) -> dict[str, Any]:
        if type(part) is self._array:
            return self._describe_array(part)
        return {"type": f"{type(part).__module__}.{type(part).__qualname__}"}

    def _identify(self, part: Any) -> tuple[Any, int]:
        """A key for the kind of array, and the array's address."""
        return (part.dtype.str, part.shape, part.flags.c_contiguous), part.ctypes.data

    def _describe_array(self, part: Any) -> dict[str, Any]:
        contiguous = bool(part.flags.c_contiguous)
        return {
            "type": "numpy.ndarray",
            "dtype": part.dtype.str,
            "shape": list(part.shape),
            "contiguous": contiguous,
        }


def _uncompilable(compiled: Callable[..., Any]) -> Callable[..., Any]:
    """torch.compile where no compiler may be started. Its default backend writes C++."""

    def compile(model: Any = None, *, backend: Any = "inductor", **options: Any) -> Any:
        if backend == "inductor":
            raise RuntimeError("torch.compile needs a C++ compiler, which cannot be started here; measure it on a GPU")
        return compiled(model, backend=backend, **options)

    return compile


class TorchRunner(ModuleRunner):
    """The same on tensors in the CPU's memory. The data may contain nested tensors, and a module may define
    KernelBench's `ModelNew`."""

    def __init__(self, command: dict[str, Any], arena: int) -> None:
        import torch

        self._torch, self._array, self._arena = torch, torch.Tensor, arena
        torch.set_grad_enabled(False)
        torch.compile = _uncompilable(torch.compile)
        if command.get("pretends_gpu"):
            importlib.import_module("presage.devices.worker.pretended").install()
            if os.environ.get("TRITON_INTERPRET") and "triton" in sys.modules:
                importlib.import_module("presage.devices.worker.stores").watch()
        if built := command.get("builds"):
            importlib.import_module("presage.devices.emulation.inline_cuda_on_cpu").install(**built)
        function, whole = load_candidate(command), tensors.completing(torch)
        self._function = lambda data: whole(function(data))

    def lay_out(self, layout: dict[str, Any]) -> None:
        self._outputs, self._any_order = [], layout.get("any_order", False)
        views = [
            [self._view(offset, array) for offset, array in zip(slot, layout["inputs"], strict=True)]
            for slot in layout["slots"]
        ]
        self._data = [tensors.arrange(layout, slot, self._torch) for slot in views]

    def _view(self, offset: int, array: dict[str, Any]) -> Any:
        size = tensors.size_of(array, self._torch)
        return tensors.over(tensors.host_bytes(self._arena + offset, size, self._torch), array, self._torch)

    def _identify(self, part: Any) -> tuple[Any, int]:
        return (part.dtype, part.shape, part.stride(), part.is_cpu), part.data_ptr()

    def _describe_array(self, part: Any) -> dict[str, Any]:
        whole = self._any_order or part.is_contiguous()
        return tensors.describe(part) | {"type": "torch.Tensor", "contiguous": bool(whole and part.is_cpu)}


class NullRunner:
    """Calls nothing, so that its windows show what a window itself costs."""

    def __init__(self, command: dict[str, Any], arena: int) -> None:
        return

    def lay_out(self, layout: dict[str, Any]) -> None:
        return

    def run(self, command: dict[str, Any]) -> dict[str, Any]:
        return {"ns": 0}


def _examiner(command: dict[str, Any], arena: int) -> ExaminerRunner:
    import torch

    return ExaminerRunner(command, "cpu", lambda offset, size: tensors.host_bytes(arena + offset, size, torch))


_RUNNERS: dict[str, Callable[[dict[str, Any], int], Any]] = {
    "bare": BareRunner,
    "module": ModuleRunner,
    "torch": TorchRunner,
    "examiner": _examiner,
    "null": NullRunner,
}


def load_on_cpu(command: dict[str, Any], arena: int) -> Any:
    return _RUNNERS[command["kind"]](command, arena)


def serve(commands: int, answers: int, load: Callable[[dict[str, Any]], Any]) -> None:
    """Execute the parent's commands. An exception is reported in the answer."""
    runner: Any = None
    while True:
        command = wire.receive(commands)
        awaits = command.get("awaits", False)
        answer: dict[str, Any] = {"token": _signalled(commands, answers, command) if awaits else command["token"]}
        try:
            match command["do"]:
                case "load":
                    runner = None
                    runner = load(command)
                case "close" if runner is None:
                    pass  # nothing is loaded
                case "run":
                    answer |= runner.run(command)
                case other:
                    answer |= getattr(runner, other.replace(" ", "_"))(command) or {}
        except Exception as error:
            stage = "compile" if _is_compiling(error) else "run"
            answer |= {"error": summary(error)[:2000], "stage": stage}
            _print_from_the_kernel_on(error)
        if awaits:  # the parent takes the outputs at once; the whole answer takes longer to write and to read
            wire.send_token(answers, answer["token"])
        wire.send(answers, answer)


def _signalled(commands: int, answers: int, command: dict[str, Any]) -> str:
    """Say that this process waits, and watch for the parent's signal. Returns the signal, a token."""
    wire.send_token(answers, command["token"])
    wire.watch(commands)
    return wire.receive_token(commands)


_OURS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def _print_from_the_kernel_on(error: Exception) -> None:
    """Print the traceback without our own frames, which do not help the kernel's author."""
    frame = error.__traceback__
    while frame and frame.tb_frame.f_code.co_filename.startswith((_OURS, "<frozen importlib")):
        frame = frame.tb_next
    traceback.print_exception(type(error), error, frame)


_NOT_BUILT = "Error building extension"
_COMPLAINT = re.compile(r"\berror\b.*:|undefined reference|cannot find -l|ninja: fatal")


def summary(error: Exception) -> str:
    """The message of an exception. For an extension that could not be built, the compilers' errors without their
    command lines."""
    said = "".join(traceback.format_exception_only(error)).strip()
    if not str(error).startswith(_NOT_BUILT):
        return said
    complaints = [line for line in said.splitlines() if len(line) < 400 and _COMPLAINT.search(line)]
    return "\n".join([said.split(":")[1].strip(), *complaints]) if complaints else said


def _is_compiling(error: Exception) -> bool:
    """Whether the error means that the kernel does not compile."""
    names = {kind.__name__ for kind in type(error).__mro__}
    compiling = {"SyntaxError", "CompilationError", "CompileError", "PTXASError"}
    return bool(names & compiling) or str(error).startswith(_NOT_BUILT)


def start(settings: dict[str, Any], gate: Gate) -> None:
    """Become a worker: enter the sandbox, report that the worker is ready, and serve commands."""
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    commands, answers, *others = settings["descriptors"]
    if "gpu" in settings:
        from presage.devices.worker import gpu

        device = gpu.Gpu(settings["gpu"])  # the driver cannot be opened once all layers are in force
        held = gate.close()
        load, address = device.load, 0
    else:
        held = gate.close()
        for name in settings["imports"]:
            __import__(name)
        if "torch" in settings["imports"]:  # a zygote may have loaded it with another number
            sys.modules["torch"].set_num_threads(settings["threads"])
        arena = mmap.mmap(others[0], settings["arena_bytes"])
        address = ctypes.addressof(ctypes.c_char.from_buffer(arena))

        def load(command: dict[str, Any]) -> Any:
            return load_on_cpu(command, address)

    wire.send(answers, {"token": "ready", "sandbox": held, "arena": address})
    try:
        serve(commands, answers, load)
    except wire.ClosedError:
        os._exit(0)
