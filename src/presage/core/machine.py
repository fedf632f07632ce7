"""The resources of this machine that the process may use: the cache folder, CPU cores and memory."""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import sys
from collections.abc import Mapping
from pathlib import Path

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc.h."""


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """The folder for cached data: $PRESAGE_CACHE_DIR, or `presage` in the user's cache folder."""
    if own := environment.get("PRESAGE_CACHE_DIR"):
        return Path(own)
    return Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "presage"


def cores(groups: Path = Path("/sys/fs/cgroup")) -> int:
    """The number of CPU cores that this process may use: those of its CPU affinity, limited by the container's quota.

    groups: where the cgroup file system is mounted."""
    found = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(found, _quota(groups)))


def memory() -> int:
    """The bytes of memory that one process may use: three quarters of the physical memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 3 // 4


def keep_memory() -> None:
    """Let the C library keep up to 256 MiB of the memory that large arrays free, for the next arrays. Getting new
    memory from the system takes as long as filling it. Does nothing if the C library has no such setting."""
    with contextlib.suppress(AttributeError, OSError):
        change = ctypes.CDLL(None).mallopt
        change(_TRIM_THRESHOLD, 256 << 20)
        change(_MMAP_THRESHOLD, 32 << 20)


def _quota(groups: Path) -> int:
    """The CPU quota of the container in cores, rounded up; sys.maxsize without a quota. Reads cgroup v2, then v1."""
    try:
        limit, period = (groups / "cpu.max").read_text().split()
    except (OSError, ValueError):
        try:
            limit, period = ((groups / "cpu" / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
        except OSError:
            return sys.maxsize
    try:
        return math.ceil(int(limit) / int(period)) if int(limit) > 0 else sys.maxsize
    except (ValueError, ZeroDivisionError):  # 'max': there is no quota
        return sys.maxsize
