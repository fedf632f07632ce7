"""Compiles CUDA C++ to a library for the CPU. Every thread of a block is a fibre, and `cuda_on_cpu.h` runs the fibres
in turns."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from presage.core import machine
from presage.core.errors import PresageError
from presage.devices.c_compiler import COMPILE_SECONDS, Compiler
from presage.kernels import expression
from presage.kernels.kernel import Kernel
from presage.problems.base import Case, Problem
from presage.sandbox import scratch

ENTRY = "presage_emulated"
"""The only function of the library. It is called like a C kernel of the problem, and makes all launches."""
HEADER = Path(__file__).with_suffix(".h")
MOST_SHARED = 227 << 10
_FLAGS = ("-std=c++17", "-O1", "-w", "-fPIC", "-fpermissive", "-ffp-contract=fast", "-fno-strict-aliasing")
_EXTERN = re.compile(
    r"extern\s+__shared__\s+((?:(?:__align__|alignas)\s*\([^)]*\)\s+)?)([\w:<> ]+?)\s+(\w+)\s*\[\s*\]\s*;"
)
_INCLUDE = re.compile(r"#\s*include\s*<(cuda|nv|mma|math|std|c[a-z]+|torch|ATen|c10|vector|limits|algorithm)[^>]*>")
_UNKNOWN = re.compile(r"\basm\b|\bwmma\b|\bmma\b|cooperative_groups|\b(?:cub|thrust|cuda)/")

_FOLDER = re.compile(r"^/\S*/(?=[^/\s]+:\d)")
"""The folder of a file that a compiler names, which is gone when somebody reads it."""


class EmulationError(Exception):
    """The kernel cannot be run here, which says nothing about whether it is right."""


def source(problem: Problem, kernel: Kernel, cases: Sequence[Case]) -> str:
    """The kernel's translated text, followed by the entry function with the launches of these cases."""
    return translated(kernel.source) + _entry(problem, kernel, cases)


def translated(text: str) -> str:
    """Translate CUDA C++ so that a C++ compiler accepts it with our header. Raises EmulationError."""
    if found := _UNKNOWN.search(re.sub(r"//.*", "", text)):
        raise EmulationError(f"it uses {found[0]}, which cannot be emulated")
    text = _INCLUDE.sub("", _EXTERN.sub(r"\2 *\3 = (\2 *)presage_dynamic;", text))
    return f'#include "{HEADER.name}"\n#line 1\n{text}\n'


def command(compiler: str, home: str, text: str, library: str, macros: Sequence[str] = ()) -> list[str]:
    """The command that compiles the file `text`, with our header in the folder `home`."""
    return [compiler, *_FLAGS, *macros, "-shared", f"-I{home}", text, "-o", library]


def refusal(said: str) -> str:
    """The reason why compiling failed, from the compiler's output."""
    lines = [line for line in said.splitlines() if "error" in line] or said.splitlines()[:1]
    return f"the C++ compiler refuses it: {_FOLDER.sub('', ' '.join(lines[:1]))[:300]}"


def _entry(problem: Problem, kernel: Kernel, cases: Sequence[Case]) -> str:
    pointers = [f"p{i}" for i in range(len(problem.inputs) + len(problem.outputs))]
    scalars = [f"s{i}" for i in range(len(problem.scalars))]
    scratch = [f"w{i}" for i in range(len(kernel.header.scratch))]
    parameters = ", ".join([*(f"void *{name}" for name in pointers), *(f"int {name}" for name in scalars)])
    addresses = ", ".join(f"&{name}" for name in (*pointers, *scalars, *scratch))
    bodies = "".join(_launches(problem, kernel, case, scalars, scratch) for case in cases)
    declared = "".join(f"    void *{name} = nullptr;\n" for name in scratch)
    return f"""extern "C" void {ENTRY}({parameters}) {{
    presage::backwards = !presage::backwards;
{declared}    void *arguments[] = {{{addresses}}};
{bodies}    presage::give_up("there is no such case");
}}
"""


def _launches(problem: Problem, kernel: Kernel, case: Case, scalars: Sequence[str], scratch: Sequence[str]) -> str:
    values = {**case.dims, **kernel.values}
    header = kernel.header
    dims = [f"{name} == {case.dims[dim]}" for name, dim in zip(scalars, problem.scalars, strict=True)]
    lines = [f"    if ({' && '.join(dims) or 'true'}) {{"]
    for name, size in zip(scratch, header.scratch.values(), strict=True):
        lines.append(f"        {name} = calloc({max(1, int(expression.evaluate(size, values)))}, 1);")
    for launch in header.launches:
        grid, block = (
            ([int(expression.evaluate(part, values)) for part in parts] + [1, 1])[:3]
            for parts in (launch.grid, launch.block)
        )
        shared = int(expression.evaluate(launch.shared, values))
        lines.append(f"        presage::launch_or_give_up({launch.entry}, {_list(grid)}, {_list(block)}, arguments);")
        if not 0 < block[0] * block[1] * block[2] <= 1024 or min(grid) < 1 or shared > MOST_SHARED:
            lines[-1] = f'        presage::give_up("cannot launch {grid} x {block} with {shared} bytes");'
    lines += [*(f"        free({name});" for name in scratch), "        return;", "    }"]
    return "\n".join(lines) + "\n"


def _list(numbers: Sequence[int]) -> str:
    return f"{{{', '.join(f'{number}u' for number in numbers)}}}"


@dataclass(frozen=True)
class Builder:
    """A C++ compiler, and our header, precompiled in its current form. That halves the time for compiling."""

    compiler: Compiler

    @classmethod
    def find(cls) -> Builder:
        named = os.environ.get("CXX") or "g++"
        path = shutil.which(named)
        if path is None:
            raise PresageError(f"no C++ compiler: {named} is not installed. On Debian or Ubuntu: apt install g++")
        return cls(Compiler(path))

    @cached_property
    def home(self) -> Path:
        """The folder with the header and its compiled form."""
        key = hashlib.sha256("\0".join((HEADER.read_text(), *_FLAGS, self.compiler.version)).encode()).hexdigest()[:16]
        home = machine.cache_folder() / "emulation" / key
        if (home / f"{HEADER.name}.gch").is_file():
            return home
        folder = scratch.make("presage-emulation-")
        try:
            shutil.copy(HEADER, folder)
            command = [self.compiler.path, *_FLAGS, "-x", "c++-header", HEADER.name, "-o", f"{HEADER.name}.gch"]
            status, said = self.compiler.run(command, folder)
            if status:
                raise PresageError(f"{self.compiler.path} cannot compile {HEADER.name}: {said[:500]}")
            home.mkdir(parents=True, exist_ok=True)
            for name in (HEADER.name, f"{HEADER.name}.gch"):
                part = home / f".{os.getpid()}.{name}"
                shutil.copy(Path(folder, name), part)
                part.replace(home / name)
            return home
        except OSError as error:
            raise PresageError(f"cannot keep compiled headers in {home}: {error.strerror}") from error
        finally:
            scratch.remove(folder)

    def build(self, text: str, folder: str) -> str:
        """Compile a text from `source` to a library in `folder`. Returns its path. Raises EmulationError."""
        file, library = Path(folder, "kernel.cpp"), f"{folder}/kernel.so"
        file.write_text(text)
        try:
            status, said = self.compiler.run(
                command(self.compiler.path, str(self.home), str(file), library), folder, readable=(str(self.home),)
            )
        except TimeoutError as error:
            raise EmulationError(f"the C++ compiler took more than {COMPILE_SECONDS:.0f} s") from error
        if status or not os.path.isfile(library):
            raise EmulationError(refusal(said))
        return library
