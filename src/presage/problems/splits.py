"""Which split a problem that nobody catalogued is in: decided by its name alone, once and for all.

The catalogue's own operations have splits by hand. Whatever is measured of a problem (its reference, modules for it,
the operators it calls) is in the problem's split. `test_problem` is for nothing but to report how good forecasts are.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

TRAIN, VALIDATION, TEST = "train", "validation", "test_problem"
_SHARES = ((0.7, TRAIN), (0.8, VALIDATION), (1.0, TEST))
_KERNELBENCH = re.compile(r"(?:level[ _]?|\bL|_L)(\d)\D{1,10}?(\d+)", re.ASCII)
_CANONICAL = re.compile(r"KB_L(\d)_(\d+)", re.ASCII)


def of_problem(name: str) -> str:
    """The split of a problem. KernelBench's are the same by any of their names: `level3_KB_L3_15`, `KB_L3_15`,
    `level3/15_DenseNet121Model.py`; a variant in parentheses is its problem's."""
    share = int(hashlib.sha256(canonical(name).encode()).hexdigest()[:12], 16) / 16**12
    return next(split for limit, split in _SHARES if share < limit)


def canonical(name: str) -> str:
    """A problem's name without what differs from one collection to the next."""
    plain = name.partition(" (")[0].removesuffix(".py")
    found = _CANONICAL.search(plain) or _KERNELBENCH.search(plain)
    return f"kernelbench/{found[1]}/{int(found[2])}" if found else plain


def of_origins(origins: Iterable[str]) -> str:
    """The split of what several problems have in common. It is in `train` if any of them is, or a package's own list
    (a name with a slash before any level, `common/matmuls`); else in `test_problem` if any of them is."""
    found = {TRAIN if is_list(origin) else of_problem(origin) for origin in origins}
    return next((split for split in (TRAIN, TEST, VALIDATION) if split in found), TRAIN)


def is_list(origin: str) -> bool:
    """Whether this is no problem but a list that a package ships."""
    return "/" in origin and not _KERNELBENCH.search(origin)
