"""A control group for one child, if the system lets us make one. It counts all memory, including shared memory."""

from __future__ import annotations

import contextlib
import os
import secrets
from functools import cache
from pathlib import Path

_PROCESSES = 4096


class MemoryGroup:
    """Limits the total memory of the processes in it. The group is removed when it is closed and empty."""

    def __init__(self, folder: Path, memory_bytes: int) -> None:
        self._folder = folder
        folder.mkdir()
        limits = {"memory.max": memory_bytes, "memory.swap.max": 0, "pids.max": _PROCESSES}
        if (folder / "memory.limit_in_bytes").exists():
            limits = {"memory.limit_in_bytes": memory_bytes, "memory.memsw.limit_in_bytes": memory_bytes}
        first = next(iter(limits))
        try:
            for name, value in limits.items():
                with contextlib.nullcontext() if name == first else contextlib.suppress(OSError):
                    (folder / name).write_text(str(value))
        except OSError:
            self.close()
            raise

    @property
    def door(self) -> str:
        """The file that a process writes to in order to enter."""
        return str(self._folder / "cgroup.procs")

    def close(self) -> bool:
        """Remove the group. Returns False if it still has processes that are ending."""
        try:
            self._folder.rmdir()
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True


def group(memory_bytes: int) -> MemoryGroup | None:
    """A new group, or None if the system does not allow one."""
    place = _place(os.getpid())
    if place is None or not memory_bytes:
        return None
    sweep()
    with contextlib.suppress(OSError):
        return MemoryGroup(place / f"presage-{secrets.token_hex(8)}", memory_bytes)
    return None


def release(group: MemoryGroup | None) -> None:
    """Remove a group now, or after its processes have ended."""
    if group is not None and not group.close():
        _waiting.append(group)


def sweep() -> None:
    """Remove the released groups whose last process has ended since."""
    _waiting[:] = [each for each in _waiting if not each.close()]


_waiting: list[MemoryGroup] = []


@cache
def _place(process: int) -> Path | None:
    """The folder in which we may make groups that count memory, or None. Version 2 of control groups does not allow
    processes beside subgroups in one group, so our groups lie beside the group that this process is in and is counted
    in."""
    with contextlib.suppress(OSError, ValueError):
        for folder in _candidates():
            if os.access(folder, os.W_OK) and _counts_memory(folder):
                return folder
    return None


def _candidates() -> list[Path]:
    mounts = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    found = []
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        kind = "cgroup" if controllers else "cgroup2"
        for fields in mounts:
            after = fields[fields.index("-") + 1 :]
            if after[0] == kind and (kind == "cgroup2" or "memory" in after[2].split(",")):
                own = Path(fields[4] + path) if path != "/" else Path(fields[4])
                own = own if own.is_dir() else Path(fields[4])
                found.append(own if kind == "cgroup" or own == Path(fields[4]) else own.parent)
    return found


def _counts_memory(folder: Path) -> bool:
    if (folder / "memory.limit_in_bytes").exists():
        return True
    control = folder / "cgroup.subtree_control"
    if "memory" not in control.read_text().split() and "memory" in (folder / "cgroup.controllers").read_text().split():
        with contextlib.suppress(OSError):
            control.write_text("+memory")
    return "memory" in control.read_text().split()
