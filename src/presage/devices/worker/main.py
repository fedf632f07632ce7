"""The child's loop: load one kernel, lay out its arguments, run windows of calls when told, and say how long they took.

It runs in the same process as foreign code, so nothing it says is believed: the parent checks the outputs in memory
while this process is stopped, and holds its own clock over every window.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import signal
import sys
import time
import traceback
from typing import Any, Protocol

from presage.devices.worker import sandbox, wire
from presage.devices.worker.module import entry_point, load_module


class Runner(Protocol):
    """Something that can be called in windows."""

    def lay_out(self, layout: dict[str, Any]) -> None: ...

    def run(self) -> dict[str, Any]: ...


class BareRunner:
    """A C function behind a trampoline that loops over argument sets without returning to Python."""

    def __init__(self, command: dict[str, Any], arena: int) -> None:
        self._arena = arena
        trampoline = ctypes.CDLL(command["trampoline"])
        self._window = trampoline.window
        self._window.restype = ctypes.c_longlong
        self._library = ctypes.CDLL(command["library"])
        self._entry = ctypes.cast(getattr(self._library, command["entry"]), ctypes.c_void_p)

    def lay_out(self, layout: dict[str, Any]) -> None:
        flat = [self._arena + offset for slot in layout["slots"] for offset in slot]
        self._pointers = (ctypes.c_void_p * max(1, len(flat)))(*flat)
        self._scalars = (ctypes.c_int * max(1, len(layout["scalars"])))(*layout["scalars"])
        self._calls = len(layout["slots"])

    def run(self) -> dict[str, Any]:
        return {"ns": self._window(self._entry, self._pointers, self._calls, self._scalars)}


class ModuleRunner:
    """`custom_kernel(data)`: data is the tuple of inputs, then the problem's parameters; it returns the outputs."""

    def __init__(self, command: dict[str, Any], arena: int) -> None:
        import numpy

        self._numpy, self._arena = numpy, arena
        self._function = entry_point(load_module(command["path"]))

    def lay_out(self, layout: dict[str, Any]) -> None:
        self._outputs: list[Any] = []
        self._data = [
            (
                *(self._view(offset, array) for offset, array in zip(slot, layout["inputs"], strict=True)),
                *layout["parameters"],
            )
            for slot in layout["slots"]
        ]

    def _view(self, offset: int, array: dict[str, Any]) -> Any:
        dtype = self._numpy.dtype(array["dtype"])
        count = 1
        for size in array["shape"]:
            count *= size
        buffer = (ctypes.c_char * (count * dtype.itemsize)).from_address(self._arena + offset)
        return self._numpy.frombuffer(buffer, dtype=dtype).reshape(array["shape"])

    def run(self, clock: Any = time.perf_counter_ns) -> dict[str, Any]:
        function, data = self._function, self._data
        self._outputs = outputs = []
        start = clock()
        for arguments in data:
            outputs.append(function(arguments))
        elapsed = clock() - start
        return {"ns": elapsed, "outputs": [self._describe(output) for output in outputs]}

    def _describe(self, output: Any) -> list[dict[str, Any]]:
        parts = output if type(output) in (tuple, list) else (output,)
        described = []
        for part in parts:
            if type(part) is not self._numpy.ndarray:
                described.append({"type": f"{type(part).__module__}.{type(part).__qualname__}"})
                continue
            contiguous = bool(part.flags.c_contiguous)
            described.append(
                {
                    "type": "numpy.ndarray",
                    "dtype": part.dtype.str,
                    "shape": list(part.shape),
                    "contiguous": contiguous,
                    "address": part.ctypes.data,
                }
            )
        return described


class NullRunner:
    """Calls nothing: what a window costs by itself."""

    def __init__(self, command: dict[str, Any] | None = None, arena: int = 0) -> None:
        return

    def lay_out(self, layout: dict[str, Any]) -> None:
        return

    def run(self) -> dict[str, Any]:
        return {"ns": 0}


_RUNNERS: dict[str, Any] = {"bare": BareRunner, "module": ModuleRunner, "null": NullRunner}


def serve(commands: int, answers: int, arena: int) -> None:
    runner: Runner = NullRunner()
    while True:
        command = wire.receive(commands)
        answer: dict[str, Any] = {"token": command["token"]}
        try:
            match command["do"]:
                case "load":
                    runner = _RUNNERS[command["kind"]](command, arena)
                    sandbox.refuse_calls(kill=True)
                case "lay out":
                    runner.lay_out(command)
                case "run":
                    answer |= runner.run()
        except Exception as error:
            summary = "".join(traceback.format_exception_only(error)).strip()
            answer |= {"error": summary[:2000], "trace": traceback.format_exc()[-4000:]}
        wire.send(answers, answer)


def main() -> None:
    settings = json.loads(sys.argv[1])
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    held = sandbox.enter(
        settings["scratch"], settings["memory_bytes"], settings["file_bytes"], settings["readable"], may_spawn=False
    )
    for name in settings["imports"]:
        __import__(name)
    arena = mmap.mmap(settings["arena"], settings["arena_bytes"])
    address = ctypes.addressof(ctypes.c_char.from_buffer(arena))
    wire.send(settings["answers"], {"token": "ready", "sandbox": held, "arena": address})
    try:
        serve(settings["commands"], settings["answers"], address)
    except wire.ClosedError:
        os._exit(0)
