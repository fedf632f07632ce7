"""Inline CUDA in a module's host code, without nvcc and without a GPU: replaces `torch.utils.cpp_extension.load_inline`
and `load`, CuPy's raw kernels and `torch.cuda._compile_kernel` by versions that report to a Launcher.

The parent calls `precompile` before it starts a child that runs such a module. Extensions are built inside the
sandboxed child.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import re
import sys
from types import ModuleType
from typing import Any

from presage.static.inline_cuda.device_code import DeviceCode, Unit
from presage.static.inline_cuda.extension import (
    Configuration,
    Extensions,
    Launcher,
    NotSupportedError,
    has_runtime,
    place_tensors,
)
from presage.static.inline_cuda.toolchain import environment, is_ready, precompile, programs, readable

__all__ = [
    "Configuration",
    "DeviceCode",
    "Launcher",
    "NotSupportedError",
    "Unit",
    "environment",
    "failures",
    "has_raw_kernels",
    "has_runtime",
    "install",
    "is_mentioned",
    "is_ready",
    "notes",
    "place_tensors",
    "precompile",
    "programs",
    "readable",
    "replace_all",
    "replace_loaders",
    "warm_up",
]

_BUILDS = re.compile(r"\b(?:cpp_extension|load_inline)\b")
_LAUNCHES = re.compile(r"\b(?:_?compile_kernel|cupy)\b")

_installed: list[Extensions] = []


def install(launcher: Launcher, *, target_arch: str, has_gpu: bool) -> None:
    """Replace the functions that build inline CUDA in this process, for this architecture (`sm_90a`). With a GPU,
    extensions that cannot be built here are left to torch."""
    import torch

    import presage.static.inline_cuda.raw_kernels as raw_kernels

    extensions = Extensions(launcher, target_arch, has_gpu, lambda name: int(getattr(_properties(torch), name)))
    replace_loaders(extensions, has_gpu=has_gpu)
    raw_kernels.install(extensions, has_gpu=has_gpu)
    if not has_gpu:
        _place_new_tensors()


def replace_all(extensions: Extensions) -> None:
    """Replace in this process, which has no GPU, all functions that build inline CUDA by those of `extensions`."""
    import presage.static.inline_cuda.raw_kernels as raw_kernels

    replace_loaders(extensions)
    raw_kernels.install(extensions, has_gpu=False)


def replace_loaders(extensions: Extensions, *, has_gpu: bool = False) -> None:
    """Replace torch's extension loaders in this process by those of `extensions`."""
    cpp_extension = _cpp_extension()
    _installed[:] = [extensions]
    for name in ("load_inline", "load"):
        theirs = getattr(cpp_extension, name)
        ours = _called_alike(getattr(extensions, name), theirs)
        setattr(cpp_extension, name, _with_fallback(ours, theirs) if has_gpu else ours)


def warm_up() -> None:
    """Import slow modules, before a child is forked."""
    from presage.core.errors import PresageError
    from presage.static import nvrtc, toolkit

    importlib.import_module("presage.static.inline_cuda.raw_kernels")
    _cpp_extension()
    with contextlib.suppress(OSError, ImportError, PresageError):
        nvrtc.version(str(toolkit.nvrtc()))


def is_mentioned(source: str) -> bool:
    """Whether a module may build an extension, which needs a compiler."""
    return _BUILDS.search(source) is not None


def has_raw_kernels(source: str) -> bool:
    """Whether a module may launch kernels from Python, by CuPy or by torch."""
    return _LAUNCHES.search(source) is not None


def failures() -> list[str]:
    """Messages about what could not be built or traced, in order. A module may have caught the error and continued."""
    return [failure for extensions in _installed for failure in extensions.failures]


def notes() -> list[str]:
    """Notes on answers to host code that were guesses."""
    return [note for extensions in _installed for note in extensions.notes]


def _cpp_extension() -> Any:
    """torch's module cpp_extension, or an empty one if it cannot be imported, as without setuptools."""
    name = "torch.utils.cpp_extension"
    try:
        return importlib.import_module(name)
    except ImportError:
        made: Any = ModuleType(name)
        made.load_inline = made.load = None
        sys.modules[name] = made
        setattr(importlib.import_module("torch.utils"), "cpp_extension", made)  # noqa: B010
        return made


def _properties(torch: Any) -> Any:
    return torch.cuda.get_device_properties(0)


def _called_alike(ours: Any, theirs: Any) -> Any:
    """Wrap `ours` so that it binds positional arguments like torch's function, whose versions differ in their order."""
    if theirs is None:
        return ours
    signature = inspect.signature(theirs)

    def load(*given: Any, **named: Any) -> Any:
        return ours(**signature.bind(*given, **named).arguments)

    return load


def _with_fallback(ours: Any, theirs: Any) -> Any:
    def load(*given: Any, **named: Any) -> Any:
        try:
            return ours(*given, **named)
        except RuntimeError:
            return theirs(*given, **named)

    return load


def _place_new_tensors() -> None:
    """Give new FakeTensors their addresses as soon as they are made, once the runtime for host code is loaded."""
    from torch._subclasses.fake_tensor import FakeTensor

    import presage.static.inline_cuda.extension as extension

    make = FakeTensor.__new__

    def placed(cls: Any, *given: Any, **named: Any) -> Any:
        made = make(cls, *given, **named)
        if has_runtime():
            extension.place(made)
        return made

    FakeTensor.__new__ = placed
