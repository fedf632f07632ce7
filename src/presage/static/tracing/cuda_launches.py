"""Records launches, copies and waits of CUDA code that a module builds itself, as steps of a trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from presage.static.inline_cuda.extension import NotSupportedError
from presage.static.trace import COPY, FILL, Launch
from presage.static.tracing.recorder import Recorder

if TYPE_CHECKING:
    from presage.static.inline_cuda import Configuration, DeviceCode, Unit


class Kernels(Protocol):
    """Does on a GPU what is recorded."""

    def __call__(self, code: bytes, name: str, how: Configuration, parameters: Sequence[bytes]) -> None:
        """Launch a kernel."""

    def write(self, unit: Unit, name: str, offset: int, source: int, size: int, stream: int) -> None:
        """Copy to a variable of the device, from `offset` on."""


class CudaLaunches:
    """Records what the module's own CUDA code does, and launches its kernels if there is a GPU."""

    def __init__(self, recorder: Recorder, run: Kernels | None = None) -> None:
        self._recorder, self._run = recorder, run
        self.texts: dict[bytes, str] = {}
        """The PTX of each piece of machine code."""
        self._written: dict[tuple[int, str], Unit] = {}

    def launch(self, code: DeviceCode, name: str, how: Configuration, parameters: Sequence[bytes]) -> None:
        if self._recorder.is_listening:  # otherwise it must cost nothing
            self._record(code, name, how, parameters)
        if self._run is not None:
            self._run(code.cubin, name, how, parameters)

    def _record(self, code: DeviceCode, name: str, how: Configuration, parameters: Sequence[bytes]) -> None:
        self.texts[code.cubin] = code.ptx
        for (_, variable), unit in self._written.items():
            if code in unit.codes:
                self._cannot_replay(f"its host code writes to {variable}, a variable of the device")
        written = tuple(self._recorder.parameter(content) for content in parameters)
        launch = Launch(0, how.grid, how.block, how.shared, written, how.cluster, how.cooperative, how.overlapping)
        self._recorder.launch("cuda", name, launch, code.cubin)

    def copy(self, kind: str, destination: int, source: int, size: int) -> None:
        if kind == "device_to_host" and self._run is None:
            raise NotSupportedError("the host code copies values from the GPU to the host; here are none")
        if kind == "device_to_host":
            self._recorder.lack("its host code copies values from the GPU to the host")
        elif kind != "host_to_host":
            self._moved(COPY, size, destination, source)

    def to_variable(self, unit: Unit, name: str, offset: int, source: int, size: int, stream: int) -> None:
        self._written[id(unit), name] = unit
        if self._run is not None:
            self._run.write(unit, name, offset, source, size, stream)

    def _cannot_replay(self, why: str) -> None:
        """Without a GPU nothing is replayed, and the steps that are known say what the call costs."""
        if self._run is None:
            self._recorder.notes[why] = None
        else:
            self._recorder.lack(why)

    def fill(self, address: int, value: int, size: int) -> None:
        self._moved(FILL, size, address, value=value)

    def sync(self, what: str) -> None:
        self._recorder.sync(what)

    def other(self, what: str) -> None:
        self._recorder.lack(f"its host code calls {what}, which is not recorded")

    def _moved(self, name: str, size: int, *addresses: int, value: int | None = None) -> None:
        if not self._recorder.is_listening:
            return
        arguments: list[Any] = [size] if value is None else [size, value]
        for address in addresses:
            place = self._recorder.at(address)
            if place is None:
                self._recorder.lack("it copies memory that belongs to no tensor")
                return
            number, offset = place
            arguments += [{"tensor": number}, offset]
        self._recorder.memory(name, arguments, size * len(addresses))
