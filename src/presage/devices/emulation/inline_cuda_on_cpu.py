"""Inline CUDA in modules that are rehearsed. Host code is compiled as always without a GPU. Its kernels run on the CPU
by means of `cuda_on_cpu.h`, on the tensors that host code passes."""

from __future__ import annotations

import ctypes
import importlib
import itertools
import math
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from presage.devices.emulation import cuda_on_cpu
from presage.devices.emulation.cuda_on_cpu import ENTRY, EmulationError
from presage.devices.worker import captured
from presage.sandbox import foreign
from presage.static import inline_cuda
from presage.static.inline_cuda.device_code import DeviceCode, Unit, plain_name
from presage.static.inline_cuda.extension import Configuration, Extensions, NotSupportedError
from presage.static.inline_cuda.host_code import Text
from presage.static.inline_cuda.lexer import text_of, tokens

_ARCH = "sm_90"
_WIDEST = 8
"""The most bytes of a plain parameter. Python code may give an `int` for a wider one; the rest is zero."""
_HERE = {"is_cuda": "is_cpu", "kCUDA": "kCPU", "CUDA": "CPU"}
"""Replacements in host code: what it checks of tensors, where it makes them, and for which it registers operators."""
_MACRO = re.compile(r"#\s*define\b")
_GUARDS = frozenset(("CUDAGuard", "OptionalCUDAGuard", "CUDAStreamGuard", "OptionalCUDAStreamGuard"))
"""Objects that choose a GPU or a stream while they live. torch's own refuse tensors on the CPU."""
_GUARD = """namespace c10::cuda {{ struct {name} {{
    template <class... Given> {name}(Given &&...) {{}}
    template <class... Given> void set_device(Given &&...) {{}}
    template <class... Given> void set_index(Given &&...) {{}}
    template <class... Given> void reset_stream(Given &&...) {{}}
}}; }}
#line 1 "{file}"
"""
_LAUNCHER = """
extern "C" void {entry}(const unsigned *grid, const unsigned *block, void **arguments) {{
    presage::backwards = !presage::backwards;
    presage::launch_or_give_up(
        {kernel}, {{grid[0], grid[1], grid[2]}}, {{block[0], block[1], block[2]}}, arguments);
}}
"""


def install(home: str, compiler: str) -> None:
    """Replace what builds inline CUDA for the rest of this process. `home`: the folder of the emulator's header and
    its compiled form."""
    properties = importlib.import_module("torch").cuda.get_device_properties(0)
    inline_cuda.replace_all(_OnCpu(home, compiler, lambda name: int(getattr(properties, name))))


class _Memory:
    """Operations on the device's memory, which is the host's."""

    def launch(self, code: DeviceCode, name: str, *_: Any) -> None:
        raise NotSupportedError(f"{name} is launched by other means than host code's own")

    def copy(self, kind: str, destination: int, source: int, size: int) -> None:
        if not captured.put_off(lambda: ctypes.memmove(destination, source, size)):
            ctypes.memmove(destination, source, size)

    def to_variable(self, *_: Any) -> None:
        raise NotSupportedError("a variable of the device is written by host code, which is not rehearsed")

    def fill(self, address: int, value: int, size: int) -> None:
        if not captured.put_off(lambda: ctypes.memset(address, value, size)):
            ctypes.memset(address, value, size)

    def sync(self, what: str) -> None:
        return

    def other(self, what: str) -> None:
        return


class _OnCpu(Extensions):
    """Extensions whose kernels are compiled for the CPU when they are first launched."""

    def __init__(self, home: str, compiler: str, properties: Any) -> None:
        super().__init__(_Memory(), _ARCH, False, properties)
        self._home, self._compiler = home, compiler
        self._functions: dict[tuple[int, str], Any] = {}
        self._held: list[Any] = []
        self._guards = itertools.count()

    def _text(
        self, name: str, file: str, source: str, is_cuda: bool, options: Sequence[str], folders: Sequence[str]
    ) -> Text:
        found = super()._text(name, file, source, is_cuda, options, folders)
        guard = f"presage_guard{next(self._guards)}"
        here = _HERE | dict.fromkeys(_GUARDS, guard)
        source = _replaced(found.source, here)
        before = _GUARD.format(name=guard, file=found.name) if guard in source else ""
        return Text(found.name, before + source, found.unit)

    def launch(self, unit: Unit, kernel: str, how: Configuration, parameters: Sequence[bytes]) -> None:
        grid, block = how.grid, how.block
        if min(grid) < 1:
            raise RuntimeError(f"it launches {kernel} without blocks, as {grid} x {block}")
        if not 0 < math.prod(block) <= 1024 or how.shared > cuda_on_cpu.MOST_SHARED:
            raise RuntimeError(f"it launches {kernel} as {grid} x {block} with {how.shared} bytes")
        if how.cooperative or how.cluster != (1, 1, 1):
            raise NotSupportedError(f"{kernel} is launched so that blocks run together, which is not rehearsed")
        values = [ctypes.create_string_buffer(value, max(_WIDEST, len(value))) for value in parameters]
        function = self._function(unit, kernel)

        def run() -> None:
            addresses = (ctypes.c_void_p * max(1, len(values)))(*map(ctypes.addressof, values))
            function((ctypes.c_uint * 3)(*grid), (ctypes.c_uint * 3)(*block), addresses)

        if not captured.put_off(run):
            run()

    def parameter_sizes(self, unit: Unit, kernel: str) -> None:
        """They are not known: the C++ compiler, which compiles the kernel for the CPU, does not tell."""
        return

    def _on_allocate(self, size: int) -> int:
        self._held.append(ctypes.create_string_buffer(max(1, size)))
        return ctypes.addressof(self._held[-1])

    def _function(self, unit: Unit, kernel: str) -> Any:
        key = id(unit), kernel
        if key not in self._functions:
            try:
                self._functions[key] = self._compiled_for_cpu(unit, kernel)
            except EmulationError as error:
                self.failures.append(f"kernel `{kernel}`: {error}")
                raise NotSupportedError(self.failures[-1]) from error
        return self._functions[key]

    def _compiled_for_cpu(self, unit: Unit, kernel: str) -> Any:
        text = cuda_on_cpu.translated(unit.source) + _LAUNCHER.format(entry=ENTRY, kernel=plain_name(kernel))
        folder = Path(tempfile.mkdtemp())
        source, library = folder / "kernel.cpp", folder / "kernel.so"
        source.write_text(text, encoding="utf-8")
        macros = [option for option in unit.options if option.startswith(("-D", "-U"))]
        command = cuda_on_cpu.command(self._compiler, self._home, str(source), str(library), macros)
        status, _, said = foreign.run_program(command)
        if status:
            raise EmulationError(cuda_on_cpu.refusal(said))
        return ctypes.CDLL(str(library))[ENTRY]


def _replaced(source: str, here: Mapping[str, str]) -> str:
    """Replace words of host code, also in what its macros stand for."""
    words = []
    for token in tokens(source):
        text = here.get(token.text, token.text)
        if token.kind == "directive" and _MACRO.match(text):
            text = "#" + _replaced(text[1:], here)
        words.append(token._replace(text=text))
    return text_of(words)
