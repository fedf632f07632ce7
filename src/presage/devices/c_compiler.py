"""Finds the system's C compiler and runs it inside the sandbox."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from presage.core.errors import PresageError
from presage.devices.child import VerdictError, environment
from presage.devices.status import Status
from presage.devices.worker import sandbox
from presage.problems.base import Problem

FLAGS = ("-O3", "-march=native", "-std=gnu11", "-fno-math-errno", "-fno-trapping-math", "-fPIC", "-shared", "-w")
"""No -ffast-math: a kernel that wants it says so in a pragma, and answers for its precision."""
COMPILE_SECONDS = 60.0
_MEMORY = 4 << 30
_FILE_BYTES = 256 << 20
_LOG_BYTES = 64 << 10
_MACHINE_FAULTS = ("No space left on device", "Cannot allocate memory", "Input/output error", "Read-only file system")


@dataclass(frozen=True)
class Compiler:
    """A C compiler: where it is, and whether it can thread."""

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
        result = subprocess.run([self.path, "--version"], capture_output=True, text=True, timeout=20, check=False)
        return (result.stdout or result.stderr).splitlines()[0].strip() if result.stdout or result.stderr else "unknown"

    @cached_property
    def openmp(self) -> bool:
        """Whether it links OpenMP; without it kernels still compile, their pragmas ignored, on one thread."""
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, "probe.c")
            source.write_text("#include <omp.h>\nint probe(void) { return omp_get_max_threads(); }\n")
            command = [self.path, "-fopenmp", "-fPIC", "-shared", str(source), "-o", f"{folder}/probe.so"]
            return subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 0

    def compile(self, source: str, folder: str, name: str) -> str:
        """Compile a shared library into `folder`; the verdict of a source that does not compile is raised."""
        try:
            file = Path(folder, f"{name}.c")
            file.write_text(source)
        except OSError as error:
            raise VerdictError(Status.DEVICE_FAULT, f"cannot write to {folder}: {error.strerror}") from error
        library = f"{folder}/{name}.so"
        openmp = ("-fopenmp",) if self.openmp else ()
        command = [self.path, *FLAGS, *openmp, str(file), "-o", library, "-lm"]
        status, log = self._run_confined(command, folder)
        if status == 0 and os.path.exists(library):
            return library
        if any(fault in log for fault in _MACHINE_FAULTS) and not self._works(folder):
            raise VerdictError(Status.DEVICE_FAULT, f"the compiler could not work: {_first_error(log)}")
        raise VerdictError(Status.COMPILE_ERROR, _first_error(log) or f"the compiler ended with status {status}")

    def _run_confined(self, command: list[str], folder: str) -> tuple[int, str]:
        confine = [sys.executable, "-I", sandbox.__file__, folder, str(_MEMORY), str(_FILE_BYTES)]
        with tempfile.TemporaryFile() as log:  # not a pipe: what a source makes the compiler say may fill our memory
            process = subprocess.Popen(
                [*confine, *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=environment(folder, 1),
                start_new_session=True,
            )
            try:
                process.wait(timeout=COMPILE_SECONDS)
            except subprocess.TimeoutExpired as error:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                raise VerdictError(Status.COMPILE_ERROR, f"did not compile within {COMPILE_SECONDS:.0f} s") from error
            log.seek(0)
            said = log.read(_LOG_BYTES).decode(errors="replace")
        return process.returncode, said.replace(f"{folder}/", "")

    def _works(self, folder: str) -> bool:
        """Whether a source that is certainly right compiles: any source can make a compiler say the disk is full."""
        try:
            Path(folder, "nothing.c").write_text("int nothing;\n")
        except OSError:
            return False
        return self._run_confined([self.path, "-c", "nothing.c", "-o", "nothing.o"], folder)[0] == 0


def trampoline_source(problem: Problem) -> str:
    """C that calls a kernel of this problem once per argument set and times the whole, with nothing in between."""
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
