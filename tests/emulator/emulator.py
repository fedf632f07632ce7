"""Runs kernels where there is no GPU, to check what they compute: CUDA C++ as fibres, Triton in its interpreter.

Neither says anything about speed. Kernels with inline assembly or tensor-core intrinsics cannot be emulated.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import math
import os
import re
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from presage import Case, Kernel, Problem
from presage.kernels import expression
from presage.problems.backend import Backend
from presage.problems.base import storage
from presage.problems.compare import difference, solve

HERE = Path(__file__).parent
_GUARD = 4096
_POISON = 0xA5
_EXTERN = re.compile(
    r"extern\s+__shared__\s+((?:(?:__align__|alignas)\s*\([^)]*\)\s+)?)([\w:<> ]+?)\s+(\w+)\s*\[\s*\]\s*;"
)
_UNKNOWN = re.compile(r"\basm\b|\bwmma\b|\bmma\b|cooperative_groups|cuda/")


class EmulationError(Exception):
    """The kernel cannot be run here, which says nothing of whether it is right."""


class WrongError(Exception):
    """The kernel is wrong, or would not compile or launch."""


def check(problem: Problem, kernel: Kernel, cases: Iterable[Case], seed: int = 1) -> None:
    """Run a concrete kernel on these cases; raises when a result is wrong."""
    run = {"cuda": _Cuda, "triton": _Module, "torch": _Module}[kernel.language](problem, kernel)
    for case in cases:
        run(case, seed)


@functools.cache
def _backend(name: str) -> Backend:
    if name == "numpy":
        from presage.problems.backend import NUMPY

        return NUMPY
    from presage.problems.on_torch import TorchSampler, namespace

    return Backend(namespace, lambda seed, style: TorchSampler(seed, style, "cpu"))


def _torch_only(problem: Problem, case: Case) -> bool:
    dtypes = {problem.dtype(array, case) for array in (*problem.inputs, *problem.outputs)}
    return any(dtype.startswith(("bfloat16", "float8")) for dtype in dtypes)


def _judge(problem: Problem, case: Case, inputs: tuple[Any, ...], outputs: tuple[Any, ...], backend: Backend) -> None:
    wrong = difference(problem, case, solve(problem, case, inputs, backend.xp), outputs, backend.xp)
    if wrong:
        raise WrongError(f"case {case.name}: {wrong}")


class _Cuda:
    def __init__(self, problem: Problem, kernel: Kernel) -> None:
        if found := _UNKNOWN.search(re.sub(r"//.*", "", kernel.source)):
            raise EmulationError(f"it uses {found[0]}")
        self._problem, self._kernel = problem, kernel
        self._library = _compile(kernel)

    def __call__(self, case: Case, seed: int) -> None:
        problem, header = self._problem, self._kernel.header
        backend = _backend("torch" if _torch_only(problem, case) else "numpy")
        inputs = problem.make_inputs(case, backend.sampler(seed, case.values))
        values = {**case.dims, **self._kernel.values}
        buffers = [_guarded(_bytes(x)) for x in inputs]
        sizes = [problem.array_bytes(array, case) for array in problem.outputs]
        buffers += [_guarded(np.full(size, _POISON, np.uint8)) for size in sizes]
        scratch = [int(expression.evaluate(size, values)) for size in header.scratch.values()]
        buffers += [_guarded(np.zeros(size, np.uint8)) for size in scratch]
        before = [buffer.copy() for buffer in buffers[: len(inputs)]]
        pointers = [ctypes.c_void_p(buffer[_GUARD:].ctypes.data) for buffer in buffers]
        held: list[Any] = [*pointers[: len(inputs) + len(sizes)]]
        held += [ctypes.c_int(case.dims[name]) for name in problem.scalars]
        held += pointers[len(inputs) + len(sizes) :]
        arguments = (ctypes.c_void_p * len(held))(*[ctypes.addressof(each) for each in held])
        for launch in header.launches:
            grid, block = (
                (ctypes.c_uint * 3)(*([int(expression.evaluate(part, values)) for part in parts] + [1, 1])[:3])
                for parts in (launch.grid, launch.block)
            )
            if not 0 < math.prod(block) <= 1024 or not all(grid):
                raise WrongError(f"case {case.name}: launch {list(grid)} x {list(block)}")
            if int(expression.evaluate(launch.shared, values)) > 227 << 10:
                raise WrongError(f"case {case.name}: too much shared memory")
            call = getattr(self._library, f"presage_launch_{launch.entry}")
            call.restype = ctypes.c_char_p
            if fault := call(grid, block, arguments):
                raise WrongError(f"case {case.name}: {fault.decode()}")
        for array, buffer, old in zip(problem.inputs, buffers, before, strict=False):
            if not array.written and not np.array_equal(buffer, old):
                raise WrongError(f"case {case.name}: it changed {array.name}")
        for buffer in buffers:
            if np.any(buffer[:_GUARD] != _POISON) or np.any(buffer[-_GUARD:] != _POISON):
                raise WrongError(f"case {case.name}: it wrote outside an array")
        outputs = []
        for array, buffer in zip(problem.outputs, buffers[len(inputs) :], strict=False):
            dtype, shape = problem.dtype(array, case), problem.shape(array, case)
            data = buffer[_GUARD:-_GUARD].view(storage(dtype)).reshape(shape)
            outputs.append(data if backend.xp is np else _tensor(data, dtype))
        _judge(problem, case, inputs, tuple(outputs), backend)


def _bytes(x: Any) -> np.ndarray:
    if isinstance(x, np.ndarray):
        return np.ascontiguousarray(x).reshape(-1).view(np.uint8)
    import torch

    return x.contiguous().reshape(-1).view(torch.uint8).numpy()


def _tensor(data: np.ndarray, dtype: str) -> Any:
    import torch

    return torch.from_numpy(np.ascontiguousarray(data)).view(getattr(torch, dtype))


def _guarded(data: np.ndarray) -> np.ndarray:
    guard = np.full(_GUARD, _POISON, np.uint8)
    whole = np.empty(len(data) + 2 * _GUARD + 512, np.uint8)
    start = -whole.ctypes.data % 256
    buffer = whole[start : start + len(data) + 2 * _GUARD]
    buffer[:] = np.concatenate([guard, data, guard])
    return buffer


_FLAGS = ("-std=c++17", "-O0", "-w", "-fPIC", "-fpermissive", "-ffp-contract=fast", "-fno-strict-aliasing")


def _compile(kernel: Kernel) -> ctypes.CDLL:
    source = _EXTERN.sub(r"\2 *\3 = (\2 *)presage_dynamic;", kernel.source)
    source = re.sub(r"#\s*include\s*<(cuda|nv|mma|math|std|c[a-z]+)[^>]*>", "", source)
    wrappers = "".join(
        f'extern "C" const char *presage_launch_{entry}(const unsigned *g, const unsigned *b, void **a)'
        f" {{ return presage::launch({entry}, g, b, a); }}\n"
        for entry in dict.fromkeys(launch.entry for launch in kernel.header.launches)
    )
    text = f'#include "cuda_on_cpu.h"\n#line 1\n{source}\n{wrappers}'
    header = _header()
    library = header / f"{hashlib.sha256(text.encode()).hexdigest()[:24]}.so"
    if not library.exists():
        with tempfile.TemporaryDirectory(dir=header) as scratch:
            made = Path(scratch, "kernel.so")
            command = ["g++", *_FLAGS, "-shared", f"-I{header}", "-x", "c++", "-", "-o", str(made)]
            done = subprocess.run(command, input=text, text=True, capture_output=True)
            if done.returncode:
                raise WrongError(f"does not compile here:\n{done.stderr[:1500]}")
            made.rename(library)
    return ctypes.CDLL(str(library))


@functools.cache
def _header() -> Path:
    """A folder with the header as it is now, compiled, which saves most of the time a small kernel takes."""
    text = (HERE / "cuda_on_cpu.h").read_text()
    key = hashlib.sha256(" ".join((text, *_FLAGS)).encode()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir(), f"presage-emulator-{os.getuid()}", key)
    if not (folder / "cuda_on_cpu.h.gch").exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            part = Path(scratch, "cuda_on_cpu.h")
            part.write_text(text)
            subprocess.run(["g++", *_FLAGS, "-x", "c++-header", str(part), "-o", f"{part}.gch"], check=True)
            part.rename(folder / part.name)
            Path(f"{part}.gch").rename(folder / f"{part.name}.gch")
    return folder


class _Module:
    """A Triton or PyTorch module, on the CPU; the process must have TRITON_INTERPRET=1 before Triton is imported."""

    def __init__(self, problem: Problem, kernel: Kernel) -> None:
        if kernel.language == "triton" and os.environ.get("TRITON_INTERPRET") != "1":
            raise EmulationError("TRITON_INTERPRET is not 1")
        if kernel.language == "triton" and any(array.dtype.startswith("float8") for array in problem.outputs):
            raise EmulationError("Triton's interpreter loses the carry when it rounds up to a power of two in float8")
        self._problem = problem
        # Triton reads its functions' source from a file.
        self._folder = tempfile.TemporaryDirectory(prefix="presage-module-")
        file = Path(self._folder.name) / f"kernel_{kernel.hash}.py"
        file.write_text(kernel.source)
        space: dict[str, Any] = {"__name__": file.stem, "__file__": str(file)}
        exec(compile(kernel.source, str(file), "exec"), space)
        self._call = space["custom_kernel"]

    def __call__(self, case: Case, seed: int) -> None:
        import torch

        problem = self._problem
        backend = _backend("torch")
        inputs = problem.make_inputs(case, backend.sampler(seed, case.values))
        parameters = [case.dims[name] for name in problem.parameters]
        data = tuple([x.clone() for x in inputs] + parameters)
        returned = self._call(data)
        outputs = returned if isinstance(returned, tuple | list) else (returned,)
        if not all(isinstance(output, torch.Tensor) and output.is_contiguous() for output in outputs):
            raise WrongError(f"case {case.name}: it does not return contiguous tensors")
        _judge(problem, case, inputs, tuple(outputs), backend)
