"""Finds the system's C compiler and runs it inside the sandbox."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from presage.core.errors import PresageError
from presage.devices.child import VerdictError
from presage.devices.status import Status
from presage.problems.base import Problem
from presage.sandbox import processes, scratch
from presage.sandbox.rules import Rules, program_paths

FLAGS = ("-O3", "-march=native", "-std=gnu11", "-fno-math-errno", "-fno-trapping-math", "-fPIC", "-shared", "-w")
"""No -ffast-math: a kernel that wants it can set it by a pragma, and is responsible for its precision."""
COMPILE_SECONDS = 60.0
_MEMORY = 4 << 30
_LOG_SIGNS = 64 << 10
_MACHINE_FAULTS = ("No space left on device", "Cannot allocate memory", "Input/output error", "Read-only file system")


@dataclass(frozen=True)
class Compiler:
    """A C compiler, and whether it supports OpenMP."""

    path: str

    @classmethod
    def find(cls, named: str | None = None) -> Compiler:
        """The compiler named by the caller or by $CC, or the first of gcc, clang and cc that is installed."""
        wanted = [named] if named else [os.environ["CC"]] if os.environ.get("CC") else ["gcc", "clang", "cc"]
        for name in wanted:
            if path := shutil.which(name):
                return cls(path)
        raise PresageError(
            f"no C compiler: {' or '.join(wanted)} is not installed. Install one, for example with"
            " 'apt-get install gcc', 'dnf install gcc' or 'pacman -S gcc', or name one with --cc PATH"
        )

    @cached_property
    def version(self) -> str:
        said = self._probe([self.path, "--version"])[1].strip()
        return said.splitlines()[0].strip() if said else "unknown"

    @cached_property
    def openmp(self) -> bool:
        """Whether the compiler links OpenMP. Without it, kernels still compile, with their pragmas ignored, and use one
        thread."""
        source = "#include <omp.h>\nint probe(void) { return omp_get_max_threads(); }\n"
        return self._probe([self.path, "-fopenmp", "-fPIC", "-shared", "probe.c", "-o", "probe.so"], source)[0] == 0

    def _probe(self, command: list[str], source: str = "") -> tuple[int, str]:
        folder = scratch.make("presage-compiler-")
        try:
            Path(folder, "probe.c").write_text(source)
            return self.run(command, folder)
        finally:
            scratch.remove(folder)

    def compile(self, source: str, folder: str, name: str, shown: str = "") -> str:
        """Compile a shared library into `folder` and return its path. Raises VerdictError if the source does not
        compile. `shown`: the name of the file in error messages."""
        try:
            file = Path(folder, f"{name}.c")
            file.write_text(source)
        except OSError as error:
            raise VerdictError(Status.DEVICE_FAULT, f"cannot write to {folder}: {error.strerror}") from error
        library = f"{folder}/{name}.so"
        openmp = ("-fopenmp",) if self.openmp else ()
        command = [self.path, *FLAGS, *openmp, str(file), "-o", library, "-lm"]
        try:
            status, log = self.run(command, folder)
        except TimeoutError as error:
            raise VerdictError(Status.COMPILE_ERROR, f"did not compile within {COMPILE_SECONDS:.0f} s") from error
        if status == 0 and os.path.isfile(library):
            return library
        log = log.replace(str(file), shown or file.name).replace(f"{folder}/", "")
        if any(fault in log for fault in _MACHINE_FAULTS) and not self._works(folder):
            raise VerdictError(Status.DEVICE_FAULT, f"the compiler could not work: {_first_error(log)}")
        raise VerdictError(Status.COMPILE_ERROR, _first_error(log) or f"the compiler ended with status {status}")

    def run(self, command: list[str], folder: str, readable: tuple[str, ...] = ()) -> tuple[int, str]:
        """Run the compiler, or a program that it has built, in the sandbox. Of the user's files, the program sees only
        `folder` and those that are `readable`. Returns the exit status and the output. Raises TimeoutError."""
        rules = Rules(folder, (*program_paths(), *self._home, *readable), _MEMORY, may_spawn=True, sees_itself=False)
        done = processes.run(command, rules, COMPILE_SECONDS)
        return done.status, done.output[:_LOG_SIGNS]

    @cached_property
    def _home(self) -> tuple[str, ...]:
        """The folders with the compiler's own parts, which may lie outside of the system's folders."""
        home = os.path.dirname(os.path.dirname(os.path.realpath(self.path)))
        parts = ("bin", "include", "lib", "lib64", "libexec", "share")
        return (os.path.dirname(self.path), *(os.path.join(home, part) for part in parts))

    def _works(self, folder: str) -> bool:
        """Whether a trivial source compiles. A kernel's source can make a compiler say that the disk is full, so the
        message alone proves nothing."""
        try:
            Path(folder, "nothing.c").write_text("int nothing;\n")
        except OSError:
            return False
        return self.run([self.path, "-c", "nothing.c", "-o", "nothing.o"], folder)[0] == 0


def trampoline_source(problem: Problem) -> str:
    """C code that calls a kernel of this problem once per argument set, with nothing in between, and times all calls
    together."""
    pointers = len(problem.inputs) + len(problem.outputs)
    scalars = len(problem.scalars)
    types = ", ".join(["void *"] * pointers + ["int"] * scalars)
    arguments = ", ".join([f"p[{i}]" for i in range(pointers)] + [f"s[{i}]" for i in range(scalars)])
    return f"""#include <time.h>
long long window(void (*kernel)({types}), void **p, int calls, const int *s) {{
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 0; i < calls; i++, p += {pointers}) kernel({arguments});
    clock_gettime(CLOCK_MONOTONIC, &end);
    return (end.tv_sec - begin.tv_sec) * 1000000000LL + (end.tv_nsec - begin.tv_nsec);
}}
"""


def _first_error(log: str) -> str:
    lines = [line for line in log.splitlines() if line.strip()]
    first = next((i for i, line in enumerate(lines) if "error" in line.lower()), 0)
    return "\n".join(lines[first : first + 6])[:1000]
