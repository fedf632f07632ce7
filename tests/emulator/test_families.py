"""The catalogue's families compute what they should, as far as that can be seen without a GPU.

A family is shared by many operations. Here every eighth in CUDA and one of each room in Triton is tried with one of
them, in its first configuration, on a few small cases. `check.py` here checks all of a problem's.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import random
import shutil
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import pytest

from presage import Case, Kernel, Problem
from presage.problems import registry

pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parent))
from emulator import EmulationError, check

CASES = 3
_PATIENCE_SECONDS = 0.5


@cache
def representatives() -> dict[str, tuple[Problem, Kernel]]:
    """One operation for each kernel file that a room shares, by a name that says both."""
    found: dict[Path, tuple[Problem, Kernel]] = {}
    for name in registry.names():
        problem = registry.get(name)
        for kernel in registry.seed_kernels(problem):
            if Path(kernel.name).parent.name != "families":
                continue
            known = found.get(Path(kernel.name))
            if known is None or _rank(name, kernel) < _rank(known[0].name, known[1]):
                found[Path(kernel.name)] = problem, kernel
    return {f"{file.parent.parent.name}/{file.name}: {p.name}": (p, k) for file, (p, k) in found.items()}


def _rank(problem: str, kernel: Kernel) -> bytes:
    return hashlib.sha256(f"{problem} {Path(kernel.name).name}".encode()).digest()


def written_in(language: str) -> list[str]:
    return [name for name, (_, kernel) in representatives().items() if kernel.language == language]


def one_of_each_room(language: str) -> list[str]:
    rooms: dict[str, str] = {}
    for name in written_in(language):
        rooms.setdefault(name.split("/")[0], name)
    return list(rooms.values())


def cases(problem: Problem) -> list[Case]:
    """Some checking cases, small ones, and one drawn anew."""
    small = sorted(problem.checks, key=problem.bytes)
    return [*random.Random(problem.name).sample(small[: 2 * CASES], CASES), problem.draw_case(random.Random(1))]


@pytest.mark.skipif(not shutil.which("g++"), reason="there is no g++")
@pytest.mark.parametrize("name", written_in("cuda")[::8])
def test_cuda(name: str) -> None:
    problem, family = representatives()[name]
    try:
        check(problem, family.render(), cases(problem))
    except EmulationError as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="module")
def interpreted() -> dict[str, str]:
    """What was wrong with each Triton module; one process runs them all, in which Triton interprets."""
    pytest.importorskip("triton")
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    child = subprocess.run([sys.executable, __file__], env=environment, capture_output=True, text=True, timeout=600)
    found = dict(json.loads(line) for line in child.stdout.splitlines() if line.startswith("["))
    assert found, child.stderr[-2000:]
    return found


@pytest.mark.parametrize("name", one_of_each_room("triton"))
def test_triton(name: str, interpreted: dict[str, str]) -> None:
    wrong = interpreted.get(name, "the interpreter did not get so far")
    if wrong.startswith(EmulationError.__name__):
        pytest.skip(wrong)
    assert wrong == ""


@pytest.mark.parametrize("name", registry.names())
def test_pytorch_agrees_with_the_oracle(name: str) -> None:
    if name == "erf" and platform.machine() == "aarch64":
        pytest.skip("PyTorch's erf is off by 5e-6 on ARM processors")
    problem = registry.get(name)
    (eager,) = (kernel for kernel in registry.seed_kernels(problem, "torch") if kernel.name.endswith("eager.py"))
    check(problem, eager, cases(problem)[-2:])


def interpret() -> None:
    for name in one_of_each_room("triton"):
        problem, family = representatives()[name]
        start = time.monotonic()
        try:
            for case in sorted(cases(problem), key=problem.bytes):
                if time.monotonic() - start < _PATIENCE_SECONDS:  # the interpreter is very slow at some things
                    check(problem, family.render(), [case])
            wrong = ""
        except Exception as error:
            wrong = f"{type(error).__name__}: {error}"
        print(json.dumps([name, wrong]), flush=True)


if __name__ == "__main__":
    interpret()
