"""Compiles the device's part of a source with NVRTC, when a kernel of it is launched, and for that kernel only."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from presage.static import nvrtc, toolkit
from presage.static.inline_cuda.toolchain import SOURCES

_TORCH_NAMES = re.compile(r"\b(?:at|c10|torch)::|\bC10_|\bCUDA_KERNEL_|\bgpuAtomicAdd")
_STANDARD = re.compile(r"\bstd::")
_NOT_IN_HALVES = (
    "-D__CUDA_NO_HALF_OPERATORS__",
    "-D__CUDA_NO_HALF_CONVERSIONS__",
    "-D__CUDA_NO_BFLOAT16_CONVERSIONS__",
    "-D__CUDA_NO_HALF2_OPERATORS__",
)
"""What torch passes to nvcc for every extension."""
_MATHS = ("--use_fast_math", "--fmad", "--ftz", "--prec-div", "--prec-sqrt", "--extra-device-vectorization")


@dataclass(frozen=True)
class DeviceCode:
    """Machine code of one compilation, and what the compiler said of it."""

    cubin: bytes
    ptx: str
    log: str
    arch: str


@dataclass
class Unit:
    """A source's device part, and what was compiled of it by now."""

    source: str
    name: str
    """As messages call it."""
    arch: str
    kernels: Sequence[str] = ()
    """Those that are no templates: they are compiled whenever anything is."""
    options: Sequence[str] = ()
    folders: Sequence[str] = ()
    """Where its own headers lie."""
    of_torch: bool = True
    """Whether it is compiled as torch compiles extensions."""
    _done: dict[str, tuple[DeviceCode, str]] = field(default_factory=dict)

    def code(self, kernel: str) -> tuple[DeviceCode, str]:
        """The code of a kernel (`k<float, 4>`), and what it is called there. Raises nvrtc.CompileError."""
        kernel = plain_name(kernel)
        if kernel not in self._done:
            self._compile(list(dict.fromkeys((*self.kernels, kernel))))
        return self._done[kernel]

    def _compile(self, wanted: list[str]) -> None:
        includes = [*self.folders, *(str(folder) for folder in toolkit.includes())]
        headers = {"presage_device.h": (SOURCES / "device" / "presage_device.h").read_text()}
        done = nvrtc.compile(
            self._with_prelude(wanted),
            self.arch,
            str(toolkit.nvrtc()),
            includes,
            self.name,
            [*(_NOT_IN_HALVES if self.of_torch else ()), *self.options],
            headers,
            wanted,
        )
        code = DeviceCode(done.cubin, done.ptx, done.log, self.arch)
        self._done |= {kernel: (code, lowered) for kernel, lowered in done.names.items()}

    def _with_prelude(self, wanted: Sequence[str]) -> str:
        """What torch's headers would have brought along, as far as it is used."""
        brought = ["climits", "cfloat", "cmath"]
        if _TORCH_NAMES.search(self.source) or any("c10::" in each for each in wanted):
            brought.append("presage_device.h")
        if _STANDARD.search(self.source):
            brought += ["algorithm", "limits", "type_traits", "utility"]
        lines = "".join(f"#include <{header}>\n" for header in brought)
        return f'{lines}namespace std {{}}\n#line 1 "{self.name}"\n{self.source}'


def plain_name(kernel: str) -> str:
    """A kernel's name without a namespace that has none.

    >>> plain_name("(anonymous namespace)::k<float, 4>")
    'k<float, 4>'
    """
    return kernel.replace("{anonymous}::", "").replace("(anonymous namespace)::", "")


def options_of(flags: Sequence[str]) -> list[str]:
    """Those of nvcc's flags that change the code, as NVRTC has them.

    >>> options_of(["-O3", "-DN=4", "-use_fast_math", "-arch=sm_80", "-maxrregcount", "64"])
    ['-DN=4', '--use_fast_math', '--maxrregcount=64']
    """
    found: list[str] = []
    for index, flag in enumerate(flags):
        long = "--" + flag.lstrip("-")
        following = flags[index + 1] if index + 1 < len(flags) else ""
        if flag.startswith(("-D", "-U")):
            found.append(flag if len(flag) > 2 else flag + following)
        elif long.split("=")[0] in _MATHS or long.startswith("--maxrregcount="):
            found.append(long)
        elif long == "--maxrregcount":
            found.append(f"{long}={following}")
    return found
