"""Rules: what a confined child may read, write, start and use. Plain data, so that they can be sent to the child."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Any

FILE_BYTES = 256 << 20
_ETC = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "nsswitch.conf", "alternatives")


@dataclass(frozen=True)
class Rules:
    """The rights of a child. Everything that is not named here is refused."""

    scratch: str
    """The child's own folder, the only one that it may write to."""
    readable: tuple[str, ...]
    """Files and folders that it may read. All others are hidden, if the system can hide them."""
    memory_bytes: int
    file_bytes: int = FILE_BYTES
    """The largest file it may write."""
    may_spawn: bool = False
    """Whether it may start programs, as compilers do."""
    programs: tuple[str, ...] | None = None
    """The files and folders that it may start programs from. None: everything that is readable."""
    uses_gpu: bool = False
    """Whether it may use the devices of NVIDIA GPUs."""
    reserves: bool = False
    """Whether it reserves far more address space than it uses, as torch and GPU drivers do. Then the limit applies to
    writable memory."""
    sees_itself: bool = True
    """Whether it may read what the system says about it, as libraries do. A compiler would quote that in its
    messages."""
    nice: int = 0
    """The nice value: how far other work has priority over it."""

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Rules:
        programs = found["programs"]
        return cls(
            **{
                **found,
                "readable": tuple(found["readable"]),
                "programs": None if programs is None else tuple(programs),
            }
        )


def program_paths() -> tuple[str, ...]:
    """The paths that a program needs to start: the system's libraries and tools, and the loader's configuration."""
    return (
        *("/usr", "/lib", "/lib64", "/lib32", "/bin", "/sbin", "/run/opengl-driver", "/nix", "/gnu/store"),
        *(f"/etc/{name}" for name in _ETC),
    )


def python_paths() -> tuple[str, ...]:
    """The further paths that this Python needs: its own files, the packages installed for it, and ours."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    packages = (path for path in sys.path if path.endswith(("site-packages", "dist-packages")))
    return tuple(dict.fromkeys((sys.prefix, sys.base_prefix, sys.exec_prefix, package, *packages)))


def system_paths() -> tuple[str, ...]:
    """The paths that any Python program needs to read."""
    return (*program_paths(), *python_paths())


def loader_paths() -> tuple[str, ...]:
    """The dynamic loaders, without which no program starts."""
    names = ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1", "/lib/ld-musl-x86_64.so.1")
    return tuple(os.path.realpath(name) for name in names if os.path.exists(name))


def environment(scratch: str, threads: int = 1) -> dict[str, str]:
    """The child's environment variables. Nothing of the caller's environment is in it, so no key can leak."""
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": scratch,
        "TMPDIR": scratch,
        "TORCHINDUCTOR_CACHE_DIR": os.path.join(scratch, "inductor"),
        "LANG": "C.UTF-8",
        "LOGNAME": "presage",
        "OMP_NUM_THREADS": str(threads),
        "OPENBLAS_NUM_THREADS": str(threads),
        "GOMP_SPINCOUNT": "20000",  # idle threads that spin for long would keep the parent off its processor
    }
