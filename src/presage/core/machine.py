"""What of the machine is ours to use."""

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
    """What can be made again at a cost: $PRESAGE_CACHE_DIR, or `presage` in the user's cache folder."""
    if own := environment.get("PRESAGE_CACHE_DIR"):
        return Path(own)
    return Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "presage"


def cores(groups: Path = Path("/sys/fs/cgroup")) -> int:
    """How many this process may use, which can be fewer than there are; a container may have a share of them all."""
    found = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(found, _quota(groups)))


def memory() -> int:
    """Bytes that one process of ours may take: three quarters of what there is."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 3 // 4


def keep_memory() -> None:
    """Have the C library keep what large arrays gave back, up to a quarter of a gigabyte, for the next ones. Memory
    that comes from the system anew takes as long to get as to fill. A C library without such a setting stays as it is.
    """
    with contextlib.suppress(AttributeError, OSError):
        change = ctypes.CDLL(None).mallopt
        change(_TRIM_THRESHOLD, 256 << 20)
        change(_MMAP_THRESHOLD, 32 << 20)


def _quota(groups: Path) -> int:
    """The whole cores that a container's share of processor time amounts to."""
    try:
        limit, period = (groups / "cpu.max").read_text().split()
    except (OSError, ValueError):
        try:
            limit, period = ((groups / "cpu" / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
        except OSError:
            return sys.maxsize
    try:
        return math.ceil(int(limit) / int(period)) if int(limit) > 0 else sys.maxsize
    except (ValueError, ZeroDivisionError):  # 'max'
        return sys.maxsize
