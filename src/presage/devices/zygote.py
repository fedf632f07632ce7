"""The parent's handle on the fork server that GPU workers come from."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from presage.core.errors import PresageError

_SOURCE = str(Path(__file__).parents[2])
_START_SECONDS = 120.0


class Zygote:
    """One process with everything imported; `fork` gives a new worker in milliseconds."""

    def __init__(self, imports: Sequence[str], environment: dict[str, str]) -> None:
        self._lock = threading.Lock()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        settings = json.dumps({"control": theirs.fileno(), "imports": list(imports)})
        paths = [_SOURCE, *(path for path in sys.path if path and Path(path).is_dir())]
        start = f"import sys; sys.path[:0] = {paths!r}; from presage.devices.worker.zygote import main; main()"
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", start, settings],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=(theirs.fileno(),),
            env=environment,
            start_new_session=True,
        )
        theirs.close()
        self._ready = False

    def fork(self, settings: dict[str, Any], descriptors: Sequence[int]) -> int:
        """A new worker's process id; the descriptors are its commands, its answers and its log."""
        return int(self._ask(settings, descriptors))

    def reap(self, pid: int) -> int | None:
        """The wait status of a worker that has ended, or None while it lives."""
        status = self._ask({"reap": pid})
        return None if status is None else int(status)

    def close(self) -> None:
        self._control.close()
        self._process.kill()
        self._process.wait()
        if self._process.stderr:
            self._process.stderr.close()

    def _ask(self, message: dict[str, Any], descriptors: Sequence[int] = ()) -> Any:
        with self._lock:
            try:
                if not self._ready:
                    self._control.settimeout(_START_SECONDS)
                    self._ready = self._control.recv(16) == b"ready"
                socket.send_fds(self._control, [json.dumps(message).encode()], list(descriptors))
                return json.loads(self._control.recv(1 << 12))
            except (OSError, ValueError) as error:
                raise PresageError(f"the fork server of GPU workers has died: {self._last_words() or error}") from error
            except BaseException:  # whose answer would be taken for the next one's
                self._process.kill()
                raise

    def _last_words(self) -> str:
        self._process.kill()
        with contextlib.suppress(OSError, ValueError):
            _, errors = self._process.communicate(timeout=5)
            return (errors or b"").decode(errors="replace").strip()[-500:]
        return ""
