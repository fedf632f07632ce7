"""Listener: the parent's end of a child's seccomp filter. A system call that the filter does not allow waits for the
parent's answer.

A child has a single filter, ours, from before any foreign code until its end. The parent decides which refused calls
end the trial, so no filter has to be installed later, when foreign code could interfere.
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import socket
import struct

from presage.sandbox import syscalls

_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_RECEIVE_SIZE = 80


class Listener:
    """Receives the system calls that a child is refused, and answers them with EPERM."""

    def __init__(self) -> None:
        self._ours, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._fd = -1

    def connect(self, seconds: float) -> None:
        """Receive the listener's descriptor, which the child sends when it enters its sandbox. There is none if the
        system does not support it."""
        self.theirs.close()
        self._ours.settimeout(max(0.001, seconds))
        try:
            _, descriptors, _, _ = socket.recv_fds(self._ours, 16, 1)
        except OSError:
            descriptors = []
        self._ours.close()
        self._fd = descriptors[0] if descriptors else -1

    def fileno(self) -> int:
        return self._fd

    @property
    def hears(self) -> bool:
        return self._fd >= 0

    def refuse(self) -> str | None:
        """Refuse the next call that waits. Returns its name, or None if no call waits."""
        if self._fd < 0 or not select.select([self._fd], [], [], 0)[0]:
            return None
        heard = bytearray(_RECEIVE_SIZE)
        try:
            fcntl.ioctl(self._fd, _RECEIVE, heard)
        except OSError:  # the thread that made the call is gone
            return None
        (id,), (number,) = struct.unpack_from("Q", heard), struct.unpack_from("i", heard, 16)
        answer = bytearray(struct.pack("QqiI", id, 0, -errno.EPERM, 0))
        try:
            fcntl.ioctl(self._fd, _SEND, answer)
        except OSError:
            return None
        return syscalls.name_of(number)

    def close(self) -> None:
        for end in (self._ours, self.theirs):
            end.close()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
