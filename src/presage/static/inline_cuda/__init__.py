"""Inline CUDA in a module's host code, without nvcc and without a GPU: `torch.utils.cpp_extension.load_inline` and
`load`, CuPy's raw kernels and `torch.cuda._compile_kernel` are replaced by ours, which tell a Launcher what happens.

`precompile` is called by the parent before a child that runs such a module; the rest runs inside the confined child.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import re
import sys
from types import ModuleType
from typing import Any

from presage.static.inline_cuda.device_code import DeviceCode
from presage.static.inline_cuda.extension import Extensions, Launcher
from presage.static.inline_cuda.toolchain import environment, is_ready, precompile, programs, readable

__all__ = [
    "DeviceCode",
    "Launcher",
    "environment",
    "failures",
    "install",
    "is_mentioned",
    "is_ready",
    "notes",
    "precompile",
    "programs",
    "readable",
    "replace_loaders",
    "warm_up",
]

_BUILDS = re.compile(r"\b(?:cpp_extension|load_inline)\b")

_installed: list[Extensions] = []


def install(launcher: Launcher, *, target_arch: str, has_gpu: bool) -> None:
    """Replace what builds inline CUDA in this process, for this architecture (`sm_90a`). Where there is a GPU, what
    cannot be built here is left to torch."""
    import torch

    import presage.static.inline_cuda.raw_kernels as raw_kernels

    extensions = Extensions(launcher, target_arch, has_gpu, lambda name: int(getattr(_properties(torch), name)))
    replace_loaders(extensions, has_gpu=has_gpu)
    raw_kernels.install(extensions, has_gpu=has_gpu)
    if not has_gpu:
        _place_new_tensors()


def replace_loaders(extensions: Extensions, *, has_gpu: bool = False) -> None:
    """Have these extensions loaded in this process in place of torch's."""
    cpp_extension = _cpp_extension()
    _installed[:] = [extensions]
    for name in ("load_inline", "load"):
        theirs = getattr(cpp_extension, name)
        ours = _called_alike(getattr(extensions, name), theirs)
        setattr(cpp_extension, name, _with_fallback(ours, theirs) if has_gpu else ours)


def warm_up() -> None:
    """Load what takes long to load, before a child is forked."""
    from presage.core.errors import PresageError
    from presage.static import nvrtc, toolkit

    importlib.import_module("presage.static.inline_cuda.raw_kernels")
    _cpp_extension()
    with contextlib.suppress(OSError, ImportError, PresageError):
        nvrtc.version(str(toolkit.nvrtc()))


def is_mentioned(source: str) -> bool:
    """Whether a module may build an extension, for which there must be a compiler."""
    return _BUILDS.search(source) is not None


def failures() -> list[str]:
    """What could not be built or traced, in order. A module may have caught the error and gone on without."""
    return [failure for extensions in _installed for failure in extensions.failures]


def notes() -> list[str]:
    """What was answered without knowing it for sure."""
    return [note for extensions in _installed for note in extensions.notes]


def _cpp_extension() -> Any:
    """torch's module, or an empty one of its name where it cannot be imported, as without setuptools."""
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
    """Arguments without a name mean what they mean to torch, whose versions differ in their order."""
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
    """Tensors that host code makes have their addresses at once, as soon as there is host code."""
    from torch._subclasses.fake_tensor import FakeTensor

    import presage.static.inline_cuda.extension as extension
    import presage.static.inline_cuda.toolchain as toolchain

    make = FakeTensor.__new__

    def placed(cls: Any, *given: Any, **named: Any) -> Any:
        made = make(cls, *given, **named)
        if toolchain.RUNTIME in sys.modules:
            extension.place(made)
        return made

    FakeTensor.__new__ = placed
