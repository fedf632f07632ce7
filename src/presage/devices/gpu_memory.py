"""Memory of a GPU that several processes share: whose fault it is that there is none left."""

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
    """The GPU has too little memory left for what measuring itself needs."""


class CrowdedError(VerdictError):
    """A kernel ran out of memory because others had it. Once they have let go of it, it can be tried again."""

    def __init__(self, reason: str) -> None:
        super().__init__(Status.DEVICE_FAULT, reason)


@dataclass(frozen=True)
class Shortage:
    """What there was when a kernel, or whoever checks it, ran out of memory: in bytes."""

    total: int
    room: int
    """The least that was free when the kernel came and after it had gone."""
    held: int
    """What came back when the kernel's process was ended."""

    def verdict(self, complaint: VerdictError) -> VerdictError:
        """A kernel may use half of the GPU. One that runs out with less, while others have the rest, is not to blame;
        nor is one beside which there is no memory to check it with, unless it took most of what there was."""
        held, room, total = (f"{size / GIB:.1f} GiB" for size in (self.held, self.room, self.total))
        facts = f"{complaint.reason}; it held {held}, and {room} of the GPU's {total} were free for it"
        if isinstance(complaint, CheckingError):
            to_blame = 2 * self.held > self.room
        else:
            to_blame = 2 * self.room >= self.total or 2 * (self.held + asked(complaint.reason)) > self.total
        return VerdictError(Status.RUNTIME_ERROR, facts) if to_blame else CrowdedError(facts)


def is_shortage(reason: str) -> bool:
    """Whether this says that there is no memory left; libraries say so in several ways.

    >>> is_shortage("CUDA_ERROR_OUT_OF_MEMORY"), is_shortage("CUDA out of memory. Tried to allocate 2.00 GiB")
    (True, True)
    """
    return "out of memory" in reason.lower().replace("_", " ")


def asked(reason: str) -> int:
    """How many bytes were asked for in vain, as far as is said.

    >>> asked("CUDA out of memory. Tried to allocate 1024.00 GiB. GPU 0 has"), asked("out of memory")
    (1099511627776, 0)
    """
    found = _ASKED.search(reason)
    return int(float(found[1]) * _UNITS.get(found[2].lower(), 0)) if found else 0
