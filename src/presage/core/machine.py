"""What of the machine is ours to use."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """What can be made again at a cost: $PRESAGE_CACHE_DIR, or `presage` in the user's cache folder."""
    if own := environment.get("PRESAGE_CACHE_DIR"):
        return Path(own)
    return Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "presage"


def cores() -> int:
    """How many this process may use, which can be fewer than there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
