"""Records launches, copies and waits of CUDA code that a module builds itself, as steps of a trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from presage.static.trace import COPY, FILL, Launch
from presage.static.tracing.recorder import Recorder

if TYPE_CHECKING:
    from presage.static.inline_cuda import DeviceCode

Run = Callable[[bytes, str, tuple[int, int, int], tuple[int, int, int], int, Sequence[bytes], int], None]
"""Launches a kernel: takes its machine code, name, grid, block, shared bytes, parameters and stream."""


class CudaLaunches:
    """Records what the module's own CUDA code does, and launches its kernels if there is a GPU."""

    def __init__(self, recorder: Recorder, run: Run | None = None) -> None:
        self._recorder, self._run = recorder, run
        self.texts: dict[bytes, str] = {}
        """The PTX of each piece of machine code."""

    def launch(
        self,
        code: DeviceCode,
        name: str,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        shared: int,
        parameters: Sequence[bytes],
        stream: int,
    ) -> None:
        self.texts[code.cubin] = code.ptx
        written = tuple(self._recorder.parameter(content) for content in parameters)
        self._recorder.launch("cuda", name, Launch(0, grid, block, shared, written), code.cubin)
        if self._run is not None:
            self._run(code.cubin, name, grid, block, shared, parameters, stream)

    def copy(self, kind: str, destination: int, source: int, size: int) -> None:
        self._moved(COPY, size, destination, source)

    def fill(self, address: int, value: int, size: int) -> None:
        self._moved(FILL, size, address, value=value)

    def sync(self, what: str) -> None:
        self._recorder.sync(what)

    def _moved(self, name: str, size: int, *addresses: int, value: int | None = None) -> None:
        arguments: list[Any] = [size] if value is None else [size, value]
        for address in addresses:
            place = self._recorder.at(address)
            if place is None:
                self._recorder.lack("it copies memory that belongs to no tensor")
                return
            number, offset = place
            arguments += [{"tensor": number}, offset]
        self._recorder.memory(name, arguments, size * len(addresses))
