"""Assigns problems outside the catalogue to splits, by their names alone, so that the split of a problem never changes.

The catalogue's own operations are assigned to splits by hand. Everything that is measured for a problem (its reference,
modules for it, the operators it calls) is in the problem's split. `test_problem` is only for reporting how good
forecasts are.
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
    """The split of a problem. All names of a KernelBench problem give the same split: `level3_KB_L3_15`, `KB_L3_15`,
    `level3/15_DenseNet121Model.py`. A variant in parentheses is in its problem's split."""
    share = int(hashlib.sha256(canonical(name).encode()).hexdigest()[:12], 16) / 16**12
    return next(split for limit, split in _SHARES if share < limit)


def canonical(name: str) -> str:
    """A problem's name without the parts that differ between collections."""
    plain = name.partition(" (")[0].removesuffix(".py")
    found = _CANONICAL.search(plain) or _KERNELBENCH.search(plain)
    return f"kernelbench/{found[1]}/{int(found[2])}" if found else plain


def of_origins(origins: Iterable[str]) -> str:
    """The split of an item that several problems have in common. It is in `train` if any of the problems is, or if any
    origin is a package's own list (`common/matmuls`); else in `test_problem` if any of the problems is."""
    found = {TRAIN if is_list(origin) else of_problem(origin) for origin in origins}
    return next((split for split in (TRAIN, TEST, VALIDATION) if split in found), TRAIN)


def is_list(origin: str) -> bool:
    """Whether this origin is a list that a package ships, not a problem: a name with a slash, but not KernelBench's."""
    return "/" in origin and not _KERNELBENCH.search(origin)
