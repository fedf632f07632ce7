"""The parent's ear at a child's seccomp filter: each call that the filter does not let through waits for its word.

There is one filter in a child, ours, from before any foreign code until the end. Which of its refusals are deadly is
for the parent to say, so nothing has to be installed later, where foreign code could be in the way.
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
    """Hears what a child is refused, and answers with EPERM."""

    def __init__(self) -> None:
        self._ours, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._fd = -1

    def connect(self, seconds: float) -> None:
        """Take over what the child sends when it enters its sandbox; nothing where its system has no such thing."""
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
        """Answer the next call that waits; returns its name, or None where none waits any more."""
        if self._fd < 0 or not select.select([self._fd], [], [], 0)[0]:
            return None
        heard = bytearray(_RECEIVE_SIZE)
        try:
            fcntl.ioctl(self._fd, _RECEIVE, heard)
        except OSError:  # whoever made it is gone
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
