"""Zygote: the parent's handle on a process that has imported modules and only forks confined children."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from presage.core.errors import PresageError

_SOURCE = str(Path(__file__).parents[2])
_START_SECONDS = 300.0
"""Seconds to import what children need. From a cold disk over a network that takes minutes."""


class Zygote:
    """A process with everything imported. `fork` starts a child in milliseconds. Thread-safe."""

    def __init__(self, imports: Sequence[str], environment: dict[str, str]) -> None:
        """imports: modules, and functions of no arguments as `module:function`, which are called once."""
        self._lock, self._owner = threading.Lock(), os.getpid()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        settings = json.dumps({"control": theirs.fileno(), "imports": list(imports)})
        paths = [_SOURCE, *(path for path in sys.path if path and Path(path).is_dir())]
        code = f"import sys; sys.path[:0] = {paths!r}; from presage.sandbox.forking import main; main()"
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", code, settings],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=(theirs.fileno(),),
            env=environment,
            start_new_session=True,
        )
        theirs.close()
        self._ready = False
        atexit.register(self.close)

    @property
    def is_alive(self) -> bool:
        return self._owner == os.getpid() and self._process.poll() is None

    def fork(self, settings: dict[str, Any], output: int, descriptors: Sequence[int], listener: int = -1) -> int:
        """Fork a child and return its process id. `output` and `listener` are descriptors, -1 for none."""
        given = {"has_output": output >= 0, "has_listener": listener >= 0}
        return int(self._ask({**settings, **given}, [fd for fd in (output, *descriptors, listener) if fd >= 0]))

    def reap(self, pid: int) -> int | None:
        """The wait status of a child that has ended, or None while it lives."""
        status = self._ask({"reap": pid})
        return None if status is None else int(status)

    def news(self, pid: int) -> int | None:
        """A child's wait status that has not been reported yet (it stopped, resumed or ended), or None."""
        status = self._ask({"news": pid})
        return None if status is None else int(status)

    def close(self) -> None:
        """Kill the zygote, and with it its children."""
        atexit.unregister(self.close)
        if self._owner != os.getpid():  # a forked copy of the process that owns the zygote must not end it
            return
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
            except TimeoutError as error:
                what = "answered" if self._ready else f"imported what children need in {_START_SECONDS:.0f} seconds"
                said = self._last_words() or "its disk or the machine may be too slow"
                raise PresageError(f"the process that starts confined children has not {what}: {said}") from error
            except (OSError, ValueError) as error:
                said = self._last_words() or str(error)
                raise PresageError(f"the process that starts confined children has died: {said}") from error
            except BaseException:  # its answer would be taken for that of the next request
                self._process.kill()
                raise

    def _last_words(self) -> str:
        self._process.kill()
        with contextlib.suppress(OSError, ValueError):
            _, errors = self._process.communicate(timeout=5)
            return (errors or b"").decode(errors="replace").strip()[-500:]
        return ""
