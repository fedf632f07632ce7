"""Finds NVIDIA's compiler library, disassembler and headers: from Python packages first, then an installed toolkit."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from presage.core.errors import PresageError, install

INSTALL = install("cuda")


class ToolkitError(PresageError):
    """A part of NVIDIA's toolkit is missing or does not work. The message says what to install."""


def nvrtc() -> Path:
    """The library of NVRTC, the run-time compiler. Raises ToolkitError if it or NVIDIA's bindings are not installed."""
    if not _is_installed("cuda.bindings"):
        raise ToolkitError(f"compiling CUDA needs cuda-bindings, which is not installed: {INSTALL}")
    for root in _roots():
        found = sorted(root.glob("lib*/libnvrtc.so.1[2-9]*"))
        if found:
            return found[0]
    raise ToolkitError(f"NVRTC, the CUDA run-time compiler, is not installed; {INSTALL}")


def includes() -> tuple[Path, ...]:
    """The folder of the CUDA headers (cuda_fp16.h and others) and, if there is one, that of the CUDA C++ library."""
    roots = list(_roots())
    headers = [root / "include" for root in roots if (root / "include" / "cuda_fp16.h").is_file()]
    if not headers:
        raise ToolkitError(f"the CUDA headers are not installed; {INSTALL}")
    library = [root / "include" / "cccl" for root in roots if (root / "include" / "cccl").is_dir()]
    return (headers[0], *library[:1])


def host_includes() -> tuple[Path, ...]:
    """The same for host code, plus the folder of the headers that CUDA's own headers include, which is a different one
    in some packages."""
    folders = (root / "include" for root in _roots())
    own = [folder for folder in folders if (folder / "crt" / "host_defines.h").is_file()]
    return tuple(dict.fromkeys((*includes(), *own[:1])))


def program(name: str) -> Path:
    """The path of one of the toolkit's programs. Raises ToolkitError if it is not installed."""
    for root in _roots():
        if (root / "bin" / name).is_file():
            return root / "bin" / name
    if on_path := shutil.which(name):
        return Path(on_path)
    raise ToolkitError(f"{name} is not installed; {INSTALL}")


def assemblers() -> tuple[Path, ...]:
    """The folders with the programs that Triton starts to turn PTX into machine code."""
    folders = (Path(entry, "triton", "backends", "nvidia", "bin") for entry in dict.fromkeys(sys.path))
    return tuple(folder for folder in folders if folder.is_dir())


def home() -> Path | None:
    """The folder of an installed toolkit with nvcc, which builds torch's extensions, from where torch looks for it;
    None if there is none."""
    on_path = shutil.which("nvcc")
    beside = os.path.dirname(os.path.dirname(os.path.realpath(on_path))) if on_path else None
    folders = (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), beside, "/usr/local/cuda")
    return next((Path(folder) for folder in folders if folder and Path(folder, "bin", "nvcc").is_file()), None)


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:
        return False


def _roots() -> Iterator[Path]:
    """Yield the folders that are laid out like a CUDA toolkit, the preferred ones first."""
    for entry in dict.fromkeys(sys.path):
        packages = Path(entry, "nvidia")
        yield from (root for root in sorted(packages.glob("cu1[3-9]"), reverse=True) if root.is_dir())
        yield from (root for root in sorted(packages.glob("cuda_*")) if root.is_dir())
    for entry in dict.fromkeys(sys.path):
        triton = Path(entry, "triton", "backends", "nvidia")
        if triton.is_dir():
            yield triton
    for home in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"):
        if home and Path(home).is_dir():
            yield Path(home)
