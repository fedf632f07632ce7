"""Decides whose fault it is when a GPU that several processes share runs out of memory."""

from __future__ import annotations

import re
from dataclasses import dataclass

from presage.core.errors import PresageError
from presage.devices.child import VerdictError
from presage.devices.examiner import CheckingError
from presage.devices.status import Status

GIB = 1 << 30
_ASKED = re.compile(r"tried to allocate ([\d.]+) ?(\w+)", re.IGNORECASE)
_UNITS = {"bytes": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40}


class NoRoomError(PresageError):
    """The GPU has too little free memory for the measurement itself."""


class CrowdedError(VerdictError):
    """A kernel ran out of memory because other processes used it. It can be tried again when they have freed it."""

    def __init__(self, reason: str) -> None:
        super().__init__(Status.DEVICE_FAULT, reason)


@dataclass(frozen=True)
class Shortage:
    """The GPU's memory in bytes when a kernel, or the check of its outputs, ran out of it."""

    total: int
    room: int
    """The lesser of what was free before the kernel came and after it had gone."""
    held: int
    """What became free when the kernel's process ended."""

    def verdict(self, complaint: VerdictError) -> VerdictError:
        """Return the verdict. A kernel may use half of the GPU. It is not to blame if it runs out with less, because
        other processes have the rest. Nor is it if there is no memory to check its outputs, unless it held most of what
        was free, and that was at least half of the GPU."""
        held, room, total = (f"{size / GIB:.1f} GiB" for size in (self.held, self.room, self.total))
        facts = f"{complaint.reason}; it held {held}, and {room} of the GPU's {total} were free for it"
        if isinstance(complaint, CheckingError):
            to_blame = 2 * self.held > (self.room if 2 * self.room >= self.total else self.total)
        else:
            to_blame = 2 * self.room >= self.total or 2 * (self.held + asked(complaint.reason)) > self.total
        return VerdictError(Status.RUNTIME_ERROR, facts) if to_blame else CrowdedError(facts)


def is_shortage(reason: str) -> bool:
    """Whether an error message says that memory ran out. Libraries word that in several ways.

    >>> is_shortage("CUDA_ERROR_OUT_OF_MEMORY"), is_shortage("CUDA out of memory. Tried to allocate 2.00 GiB")
    (True, True)
    """
    return "out of memory" in reason.lower().replace("_", " ")


def asked(reason: str) -> int:
    """The bytes of the failed allocation, or 0 if the message does not tell.

    >>> asked("CUDA out of memory. Tried to allocate 1024.00 GiB. GPU 0 has"), asked("out of memory")
    (1099511627776, 0)
    """
    found = _ASKED.search(reason)
    return int(float(found[1]) * _UNITS.get(found[2].lower(), 0)) if found else 0
