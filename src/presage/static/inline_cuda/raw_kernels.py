"""Kernels that Python code launches itself: CuPy's RawKernel and RawModule, and torch.cuda._compile_kernel.

Without CuPy, or without a GPU for it, a small module of the same name replaces it. Its arrays are torch tensors.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

from presage.static.inline_cuda.device_code import Unit, options_of
from presage.static.inline_cuda.extension import Configuration, Extensions, NotSupportedError


def install(extensions: Extensions, *, has_gpu: bool) -> None:
    import torch

    torch.cuda._compile_kernel = _compile_kernel(extensions)
    if hasattr(torch.cuda, "compile_kernel"):
        torch.cuda.compile_kernel = torch.cuda._compile_kernel
    if has_gpu and importlib.util.find_spec("cupy") is not None:
        return
    for name, module in _cupy(extensions).items():
        sys.modules[name] = module


class _Kernel:
    """One entry of a source."""

    def __init__(self, extensions: Extensions, unit: Unit, name: str, pack: Callable[[Any], bytes]) -> None:
        self._extensions, self._unit, self._name, self._pack = extensions, unit, name, pack
        self.max_dynamic_shared_size_bytes = 0

    def launch(self, grid: Any, block: Any, arguments: Sequence[Any], shared: int, stream: Any) -> None:
        sizes = self._extensions.parameter_sizes(self._unit, self._name)
        if sizes is None:
            sizes = [0] * len(arguments)
        if len(sizes) != len(arguments):
            raise TypeError(f"{self._name} takes {len(sizes)} arguments, and is given {len(arguments)}")
        packed = [self._pack(each) for each in arguments]
        # Cut or pad each value to the bytes that the kernel declares.
        values = [value[:size].ljust(size, b"\0") if size else value for value, size in zip(packed, sizes, strict=True)]
        handle = int(getattr(stream, "cuda_stream", getattr(stream, "ptr", 0)) or 0)
        how = Configuration(_three(grid), _three(block), shared, handle)
        self._extensions.launch(self._unit, self._name, how, values)


def _three(sizes: Any) -> tuple[int, int, int]:
    given = [int(size) for size in (sizes if isinstance(sizes, tuple | list) else (sizes,))]
    x, y, z = (*given, 1, 1)[:3]
    return x, y, z


def _address(value: Any) -> int | None:
    """The address of an array's memory; None if the value is no array."""
    if hasattr(value, "data_ptr"):
        return int(value.data_ptr())
    found = getattr(getattr(value, "data", None), "ptr", None)
    return None if found is None else int(found)


# -- torch ------------------------------------------------------------------------------------------------------------


def _compile_kernel(extensions: Extensions) -> Callable[..., Any]:
    def compile_kernel(
        kernel_source: str,
        kernel_name: str,
        compute_capability: Any = None,
        cuda_include_dirs: Any = None,
        nvcc_options: Any = None,
        **_: Any,
    ) -> Any:
        folders = [str(folder) for folder in cuda_include_dirs or ()]
        unit = Unit(kernel_source, kernel_name, extensions.arch, (), options_of(nvcc_options or ()), folders, False)
        extensions.parameter_sizes(unit, kernel_name)  # says at once if it does not compile
        kernel = _Kernel(extensions, unit, kernel_name, _pack_for_torch)

        def call(
            grid: Any = (1, 1, 1), block: Any = (1, 1, 1), args: Any = None, shared_mem: int = 0, stream: Any = None
        ) -> None:
            kernel.launch(grid, block, list(args or ()), shared_mem, stream)

        return _with_attributes(call, set_shared_memory_config=lambda *_: None)

    return compile_kernel


def _with_attributes(function: Any, **attributes: Any) -> Any:
    for name, value in attributes.items():
        setattr(function, name, value)
    return function


def _pack_for_torch(value: Any) -> bytes:
    """Pack an argument as torch does: tensors as pointers, integers as int and other numbers as float."""
    if (address := _address(value)) is not None:
        return address.to_bytes(8, "little")
    if isinstance(value, int):
        return bytes(ctypes.c_int(value))
    if isinstance(value, float):
        return bytes(ctypes.c_float(value))
    raise TypeError(f"a kernel cannot be given a {type(value).__name__}")


# -- CuPy -------------------------------------------------------------------------------------------------------------


def _pack_for_cupy(value: Any) -> bytes:
    """Pack an argument as CuPy does: arrays as pointers, NumPy's scalars as they are and Python's as 64 bits."""
    if (address := _address(value)) is not None and not hasattr(value, "tobytes"):
        return address.to_bytes(8, "little")
    if isinstance(value, bool):
        return bytes([value])
    if isinstance(value, int):
        return (value & (2**64 - 1)).to_bytes(8, "little")
    if isinstance(value, float):
        return bytes(ctypes.c_double(value))
    if hasattr(value, "tobytes"):
        return bytes(value.tobytes())
    raise TypeError(f"a kernel cannot be given a {type(value).__name__}")


def _cupy(extensions: Extensions) -> dict[str, ModuleType]:
    def unit_of(code: str, options: Sequence[str], names: Sequence[str] = ()) -> Unit:
        return Unit(code, "cupy.cu", extensions.arch, tuple(names), options_of(list(options)), (), False)

    class RawKernel(_Kernel):
        def __init__(self, code: str, name: str, options: Sequence[str] = (), *_: Any, **__: Any) -> None:
            super().__init__(extensions, unit_of(code, options), name, _pack_for_cupy)

        def __call__(
            self, grid: Any, block: Any, args: Sequence[Any], *_: Any, shared_mem: int = 0, stream: Any = None
        ) -> None:
            self.launch(grid, block, list(args), shared_mem, stream)

        def compile(self, *_: Any, **__: Any) -> None:
            extensions.parameter_sizes(self._unit, self._name)

    class RawModule:
        def __init__(
            self,
            *,
            code: str | None = None,
            path: str | None = None,
            options: Sequence[str] = (),
            name_expressions: Sequence[str] | None = None,
            **_: Any,
        ) -> None:
            if code is None:
                raise NotSupportedError("a RawModule from a file is not supported")
            self._code, self._options = code, options

        def get_function(self, name: str) -> RawKernel:
            return RawKernel(self._code, name, self._options)

        def compile(self, *_: Any, **__: Any) -> None:
            return

    module, cuda = ModuleType("cupy"), ModuleType("cupy.cuda")
    module.RawKernel, module.RawModule, module.cuda = RawKernel, RawModule, cuda  # type: ignore[attr-defined]
    module.ndarray = type("ndarray", (), {})  # type: ignore[attr-defined]  # others ask whether a tensor is one
    module.asarray = module.from_dlpack = module.ascontiguousarray = lambda array, *_, **__: array  # type: ignore[attr-defined]
    for name, value in _scalars().items():
        setattr(module, name, value)
    _fill_cuda(cuda)
    return {"cupy": module, "cupy.cuda": cuda}


def _scalars() -> dict[str, Any]:
    import numpy

    names = ("bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32")
    return {name: getattr(numpy, name) for name in (*names, "float64")}


class _Context(contextlib.nullcontext[None]):
    """CuPy's only stream or device."""

    def __init__(self, number: Any = 0, *_: Any, **__: Any) -> None:
        super().__init__()
        self.ptr = number if isinstance(number, int) else 0
        self.id, self.compute_capability = 0, ""
        self.use = self.synchronize = lambda *_: None


def _fill_cuda(cuda: Any) -> None:
    cuda.Stream = cuda.ExternalStream = cuda.Device = _Context
    cuda.Stream.null = _Context()
    cuda.get_current_stream = lambda *_: _Context()
    cuda.runtime = SimpleNamespace(deviceSynchronize=lambda: None, getDevice=lambda: 0)
