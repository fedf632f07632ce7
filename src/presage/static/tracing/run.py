"""Traces a module without a GPU: its host code runs on tensors that have shapes and no values (torch's FakeTensor). The
kernels that it would launch are compiled, and the launches are recorded."""

from __future__ import annotations

import base64
import contextlib
import importlib
import importlib.util
import json
import os
import re
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
import triton
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_leaves
from triton.compiler.errors import CompilationError

from presage.core.text import one_line
from presage.static import inline_cuda, modules, ptx, walk
from presage.static.inline_cuda.extension import NotSupportedError
from presage.static.trace import LAUNCHES
from presage.static.tracing import host_code, pretended_gpu
from presage.static.tracing import recorder as recording
from presage.static.tracing.cuda_launches import CudaLaunches
from presage.static.tracing.host_time import HostCodeTimeoutError, awaited, limited
from presage.static.tracing.recorder import Recorder
from presage.static.tracing.triton_driver import RecordingDriver

_CALLS = 2
"""Calls per case; the last is traced. In the first a module may autotune, capture, or make tensors that it keeps."""
_TIMEOUT = "timeout"
_WALL_SHARE = 3
"""How much longer host code may take than its limit of processor time, if it sleeps or waits: to be loaded, and in
each case."""
_NEEDS_VALUES = ("DataDependentOutputException", "DynamicOutputShapeException", "UnsupportedFakeTensorException")
_ASKS_FOR_ARRAY = ".numpy() is not supported for tensor subclasses"
_NEEDS_GPU = (
    "Torch not compiled with CUDA",
    "compiled without CUDA support",
    "Cannot initialize CUDA",
    "Cannot access accelerator device",
    "dummy base class",
    "module 'torch._C' has no attribute '_cuda",
    "no fake impl or Meta kernel",
    "arguments from the 'CUDA' backend",
    "UnsupportedOperatorException",
    "NVML",
    "DynamicLibNotFoundError",
    "libcuda.so",
    "cudaErrorNoDevice",
    "cudaErrorInsufficientDriver",
    "CudaSupportError",
)
_NO_LIBRARY = re.compile(
    r"\b(cublas|cudnn|cusolver|cusparse|curand|cufft|cutlass|cute|nccl|nvshmem)[\w/.]*['’\"]?(: No such file|"
    r".* was not declared| does not name a type| has not been declared| is undefined)|"
    r"cannot open source file \"(cu(blas|dnn|solver|sparse|rand|fft|tlass|te/)|nccl|nvshmem)",
    re.IGNORECASE,
)
_REMOVED = re.compile(r"\b(?:has|have) been removed\b|\bno longer supported\b")
"""What Triton says of parts of its language that older versions have."""
_OF_CUPY = re.compile(r"(?:module|from|named) '(?:cupy|cupy\.[\w.]+)'")
_NOT_HERE = re.compile(
    r"undefined symbol: (cu(?:da)?[A-Z]\w*|(?:cu(?:blas|dnn|fft|rand|solver|sparse)|nccl|nvrtc|nvtx)\w*"
    r"|\w*[24]cuda\d\w*)"
)
"""Functions of CUDA, its libraries, and torch's use of it that the replacement of the run time lacks."""


def warm_up() -> None:
    """Trigger slow work that torch does at the first operator on a tensor without values, and Triton at the first
    kernel: they import some 900 modules, and Triton hashes itself."""
    with FakeTensorMode():
        torch.empty(1).add(1)
    recording.warm_up()
    for name in modules.IMPORTED_LATE:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    triton.runtime.cache.triton_key()


def run(request: Mapping[str, Any]) -> dict[str, Any]:
    """Import the module, call it on tensors without values, and return each case's trace and what its launches execute.
    Cases run one after the other in one process, so that Triton compiles shared kernels only once."""
    recorder, fakes = Recorder(has_gpu=False), FakeTensorMode(allow_non_fake_inputs=True)
    driver = RecordingDriver(request, recorder)
    triton.runtime.driver.set_active(driver)
    pretended_gpu.pretend(request, recorder, driver)
    built = CudaLaunches(recorder)
    inline_cuda.install(built, target_arch=request["arch"], has_gpu=False)
    torch.set_grad_enabled(False)
    _threads.watch()
    try:
        with (
            awaited(_WALL_SHARE * request["host_seconds"]),
            limited(request["host_seconds"]),
            fakes,
            recorder,
            pretended_gpu.WithoutGpu(),
        ):
            reference = host_code.InputMaker(request["files"]) if request["files"] else None
            call = host_code.entry(host_code.load(request["source"]), reference)
    except BaseException as error:
        return _failed(error)
    cases: list[Any] = []
    late = None
    for case in request["cases"]:
        answer = late or _run_case(call, reference, case, recorder, built, fakes, request["host_seconds"])
        late = answer if answer["status"] == _TIMEOUT else None  # it would be for the other cases, too
        cases.append([case, answer])
    return {"status": "ok", "cases": cases}


def _run_case(
    call: Callable[..., Any],
    reference: host_code.InputMaker | None,
    case: Mapping[str, Any],
    recorder: Recorder,
    built: CudaLaunches,
    fakes: FakeTensorMode,
    seconds: float,
) -> dict[str, Any]:
    document: dict[str, Any] = {}
    try:
        with awaited(_WALL_SHARE * seconds):
            for _ in range(_CALLS):
                with limited(seconds), fakes, recorder, pretended_gpu.WithoutGpu():
                    data = reference.data(case["arguments"]) if reference else host_code.data_of(case)
                    recorder.begin([leaf for leaf in tree_leaves(data) if isinstance(leaf, torch.Tensor)])
                    document, _ = recorder.end(call(data))
    except BaseException as error:
        said = str(error)
        notes = [*recorder.notes, *(why for why in inline_cuda.failures() if why.partition(": ")[2] not in said)]
        recorder.stop()
        if not document:
            return {**_failed(error), "notes": notes}
    if _threads.started:
        return {"status": "unknown", "error": _THREADS, "notes": document["notes"]}
    failures = [f"could not be built here: {why}" for why in inline_cuda.failures()]
    document["notes"] = [one_line(note, 500) for note in (*document["notes"], *inline_cuda.notes(), *failures)]
    executed = _executed(document, built.texts)
    return {"status": "ok", "trace": document, "executed": executed}


def _executed(document: Mapping[str, Any], texts: Mapping[bytes, str]) -> list[dict[str, float] | None]:
    """For each step, counts of what a warp executes. Equal launches are walked once."""
    found: dict[str, dict[str, float] | None] = {}
    keys = [_equal(step) for step in document["steps"]]
    for key, step in zip(keys, document["steps"], strict=True):
        if key not in found:
            found[key] = _walked(document, step, texts)
    return [found[key] for key in keys]


def _equal(step: Mapping[str, Any]) -> str:
    """A text that is the same for launches whose walks are the same, and for all other steps."""
    if step["kind"] not in LAUNCHES:
        return ""
    given = ["" if each["pointers"] and len(each["hex"]) == 16 else each["hex"] for each in step["parameters"]]
    return json.dumps([*(step[part] for part in ("name", "cubin", "grid", "block", "cluster")), given])


def _walked(
    document: Mapping[str, Any], step: Mapping[str, Any], texts: Mapping[bytes, str]
) -> dict[str, float] | None:
    """Counts of what a warp of a launch executes; None for other steps, and if the walk fails."""
    if step["kind"] not in LAUNCHES:
        return None
    code = base64.b64decode(document["cubins"][step["cubin"]])
    text = texts[code] if code in texts else _ptx(step["name"], code)
    x, y, z = step["grid"]
    grid = (x // step["cluster"][0], y, z) if step["kind"] == "triton" else (x, y, z)  # a program is a cluster
    return walk.of_call(text, step["name"], _arguments(text, step), grid, step["block"])


def _arguments(text: str, step: Mapping[str, Any]) -> list[walk.Argument]:
    """A launch's parameters that are integers or structs; None for other parameters."""
    entry = ptx.parse(text, step["name"])
    kinds = list(entry.parameters.values()) if entry else []
    return [_argument(*each) for each in zip(step["parameters"], kinds, strict=False)]


def _argument(parameter: Mapping[str, Any], kind: str) -> walk.Argument:
    content = bytes.fromhex(parameter["hex"])
    if kind == "b8":
        return content
    return None if parameter["pointers"] or kind.startswith("f") else int.from_bytes(content, "little", signed=True)


def _ptx(name: str, binary: bytes) -> str:
    """The PTX of a cubin, which Triton's cache keeps beside it; empty if it is not found."""
    for file in Path(os.environ["TRITON_CACHE_DIR"]).glob(f"*/{name}.cubin"):
        if file.read_bytes() == binary:
            return file.with_suffix(".ptx").read_text()
    return ""


_THREADS = "the host code starts threads, and what they do cannot be traced"


class _Threads:
    """Counts the threads that host code starts. Steps are recorded in one thread."""

    def __init__(self) -> None:
        self.started = 0

    def watch(self) -> None:
        start = threading.Thread.start

        def counted(thread: threading.Thread) -> None:
            self.started += 1
            start(thread)

        threading.Thread.start = counted  # type: ignore[assignment,method-assign]


_threads = _Threads()


def _failed(error: BaseException) -> dict[str, Any]:
    """The answer of a module that fails. One with threads may fail only here."""
    status, text = _status(error), _explain(error)
    if status == "runtime_error" and _threads.started:
        return {"status": "unknown", "error": f"{_THREADS} ({text})"}
    return {"status": status, "error": text}


def _status(error: BaseException) -> str:
    name = type(error).__name__
    if isinstance(error, HostCodeTimeoutError):
        return _TIMEOUT
    if name == "OutOfResources":
        return "runtime_error"
    is_ours = isinstance(error, host_code.ReferenceFailedError | NotSupportedError) or _lacks_library(error)
    if is_ours or _NOT_HERE.search(str(error)) or _missing_package(error) or _needs_values(error) or _needs_gpu(error):
        return "unknown"
    if _REMOVED.search(_reason(error)) or _started_a_program(error) or _takes_functions(error) or _is_of_cupy(error):
        return "unknown"
    if name == "CompileError":
        return "compile_error"
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    in_compiler = any("/triton/compiler/" in file or "/triton/backends/" in file for file in files)
    return "compile_error" if in_compiler or isinstance(error, SyntaxError | ImportError) else "runtime_error"


def _missing_package(error: BaseException) -> str:
    """The package that is imported and not installed; empty for other errors."""
    package = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    return package if package and package not in sys.modules and importlib.util.find_spec(package) is None else ""


def _lacks_library(error: BaseException) -> bool:
    """Whether an extension does not compile because it uses one of NVIDIA's libraries, whose headers are not here."""
    return any(_NO_LIBRARY.search(line) for line in str(error).splitlines() if "error" in line.lower())


def _started_a_program(error: BaseException) -> bool:
    """Whether a program could not be started, or failed. Here only compilers can be started."""
    is_of_one = isinstance(error, OSError) or type(error).__module__ == "subprocess"
    frames = traceback.extract_tb(error.__traceback__)
    return is_of_one and any(os.path.basename(frame.filename) == "subprocess.py" for frame in frames)


def _is_of_cupy(error: BaseException) -> bool:
    """Whether the module asks for a part of CuPy that its replacement here lacks."""
    return isinstance(error, AttributeError | ImportError) and _OF_CUPY.search(str(error)) is not None


def _takes_functions(error: BaseException) -> bool:
    """Whether an operator of torch that takes functions (`cond`, `flex_attention`) failed, which is not for the host
    code to mend: such operators call torch's compiler, which does not work on tensors without values."""
    return any("/torch/_higher_order_ops/" in frame.filename for frame in traceback.extract_tb(error.__traceback__))


def _needs_values(error: BaseException) -> bool:
    return type(error).__name__ in _NEEDS_VALUES or _ASKS_FOR_ARRAY in str(error)


def _needs_gpu(error: BaseException) -> bool:
    """Whether an error means that an operator cannot run without a GPU. The module's status is then unknown, since some
    torch operators cannot tell the shapes of their results without values."""
    said = f"{type(error).__name__}: {error}"
    return any(sign in said for sign in _NEEDS_GPU)


def _needed(error: BaseException) -> str:
    """What the host code does with values that are not here."""
    if type(error).__name__ == "DynamicOutputShapeException":
        return f"the host code makes a tensor whose shape depends on values, and tensors have none here ({error})"
    return f"the host code asks for a tensor's value, and tensors have none here ({error})"


def _frames(error: BaseException) -> list[traceback.FrameSummary]:
    """The calls of the module that led to the error, the innermost last."""
    found = traceback.extract_tb(error.__traceback__)
    return [frame for frame in found if os.path.basename(frame.filename) == host_code.FILE]


def _reason(error: BaseException) -> str:
    """What Triton's compiler says beside the place in the source, or the error that caused it says; empty for other
    errors."""
    if not isinstance(error, CompilationError):
        return ""
    return str(error.error_message or error.__cause__ or "")


def _explain(error: BaseException) -> str:
    text = f"{type(error).__name__}: {error}".replace("'FakeTensor'", "'Tensor'")  # as the module's author knows it
    if isinstance(error, host_code.ReferenceFailedError):
        return str(error)
    if reason := _reason(error):
        lacks = f"Triton {triton.__version__} here lacks what it uses"
        first = lacks if _REMOVED.search(reason) else type(error).__name__
        text = f"{first}: {reason}\n{str(error).removesuffix(reason).rstrip()}"
    if package := _missing_package(error):
        text = (
            f"{package} is not installed in {sys.executable}; if you know and trust this package, install it there, and"
            " if it is a file of your own, make it part of the module"
        )
    if _lacks_library(error):
        text = f"the extension needs one of NVIDIA's libraries, which cannot be used here\n{text}"
    if missing := _NOT_HERE.search(str(error)):
        text = f"the extension calls {missing[1]}, which cannot be traced"
    if _needs_gpu(error):
        text = f"the host code does what torch cannot do without a GPU ({str(error).splitlines()[0][:200]})"
    if _started_a_program(error):
        text = f"the host code starts a program, which it cannot do here ({type(error).__name__}: {error})"
    if _is_of_cupy(error):
        text = f"it uses a part of CuPy that cannot be traced ({error})"
    if _takes_functions(error):
        text = "the host code calls an operator of torch that takes functions, which cannot be traced"
    if _needs_values(error):
        text = _needed(error)
    frames = _frames(error)
    if _needs_gpu(error) and any("sparse" in str(frame.line) for frame in frames):
        text = "the host code makes or uses a sparse tensor, which cannot be traced"
    if isinstance(error, HostCodeTimeoutError):
        text = str(error)
    if type(error).__name__ == "OutOfResources":
        return f"cannot launch: {error}"
    if frames and not isinstance(error, SyntaxError):
        text += f"\n  at line {frames[-1].lineno}: {frames[-1].line}"
    return text
