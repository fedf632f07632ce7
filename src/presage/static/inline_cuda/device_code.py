"""Compiles the device part of a source with NVRTC: only when one of its kernels is launched, and of templates only the
launched instances."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from presage.static import nvrtc, toolkit
from presage.static.inline_cuda.toolchain import SOURCES

_TORCH_NAMES = re.compile(r"\b(?:at|c10|torch)::|\bC10_|\bCUDA_KERNEL_|\bgpuAtomicAdd")
_VARIABLE = re.compile(r"^[^\n/]*\.(?:const|global) \.align \d+ \.\w+ ([\w$]+)", re.MULTILINE)
_STANDARD = re.compile(r"\bstd::")
_NOT_IN_HALVES = (
    "-D__CUDA_NO_HALF_OPERATORS__",
    "-D__CUDA_NO_HALF_CONVERSIONS__",
    "-D__CUDA_NO_BFLOAT16_CONVERSIONS__",
    "-D__CUDA_NO_HALF2_OPERATORS__",
)
"""Macros that torch passes to nvcc for every extension."""
_MATHS = ("--use_fast_math", "--fmad", "--ftz", "--prec-div", "--prec-sqrt", "--extra-device-vectorization")


@dataclass(frozen=True)
class DeviceCode:
    """The result of one compilation: machine code, PTX and the compiler's log."""

    cubin: bytes
    ptx: str
    log: str
    arch: str

    def variable(self, name: str) -> str | None:
        """The name in the machine code of a variable of the device (`ns::weights`); None if it is not there."""
        plain = name.strip("()& ").split("::")[-1].strip()
        known = _VARIABLE.findall(self.ptx)
        mangled = re.compile(rf"_Z\w*?(?<!\d){len(plain)}{re.escape(plain)}E?")
        return plain if plain in known else next(filter(mangled.fullmatch, known), None)


@dataclass
class Unit:
    """The device part of a source, and the kernels that were compiled from it so far."""

    source: str
    name: str
    """The source's name in messages."""
    arch: str
    kernels: Sequence[str] = ()
    """The kernels that are not templates. Every compilation includes them."""
    options: Sequence[str] = ()
    folders: Sequence[str] = ()
    """Folders of the source's own headers."""
    of_torch: bool = True
    """Whether to compile with the macros that torch sets for extensions."""
    codes: list[DeviceCode] = field(default_factory=list)
    """All of them."""
    _done: dict[str, tuple[DeviceCode, str]] = field(default_factory=dict)

    def code(self, kernel: str) -> tuple[DeviceCode, str]:
        """The code of a kernel (`k<float, 4>`), and the kernel's name in it. Raises nvrtc.CompileError."""
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
        self.codes.append(code)
        self._done |= {kernel: (code, lowered) for kernel, lowered in done.names.items()}

    def _with_prelude(self, wanted: Sequence[str]) -> str:
        """The source after the includes that it uses and that torch's headers would have brought along."""
        brought = ["climits", "cfloat", "cmath"]
        if _TORCH_NAMES.search(self.source) or any("c10::" in each for each in wanted):
            brought.append("presage_device.h")
        if _STANDARD.search(self.source):
            brought += ["algorithm", "limits", "type_traits", "utility"]
        lines = "".join(f"#include <{header}>\n" for header in brought)
        return f'{lines}namespace std {{}}\n#line 1 "{self.name}"\n{self.source}'


def plain_name(kernel: str) -> str:
    """A kernel's name without anonymous namespaces.

    >>> plain_name("(anonymous namespace)::k<float, 4>")
    'k<float, 4>'
    """
    return kernel.replace("{anonymous}::", "").replace("(anonymous namespace)::", "")


def options_of(flags: Sequence[str]) -> list[str]:
    """The nvcc flags that change the code, as NVRTC options. Other flags are dropped.

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
