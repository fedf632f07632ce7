"""The catalogue's families compute what they should, as far as that can be seen without a GPU.

A family is shared by many operations. Here every eighth in CUDA and one of each room in Triton is rehearsed with one of
them, in its first configuration; of these, seven of eight only in sweeps. `benchmarks/rehearsals.py` rehearses recorded
kernels of each operation.
"""

from __future__ import annotations

import copy
import hashlib
import platform
import random
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from sweeps import mostly_in_sweeps

from presage import Case, Kernel, Problem
from presage.devices.emulation.rehearser import Rehearser, small_cases
from presage.problems import registry
from presage.problems.backend import Backend
from presage.problems.compare import difference, solve

torch = pytest.importorskip("torch")


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


LONG = ("scans/sort_", "scans/scan_", "scans/topk_rounds", "convolutions/implicit_")
"""What an interpreter of Triton takes up to a minute for; others of these rooms take seconds."""
MANY_ROWS = 64


def quick_first(name: str) -> bool:
    """By whether an interpreter of Triton has less to do."""
    return not name.startswith("normalisations/")


def one_of_each_room(language: str) -> list[str]:
    rooms: dict[str, str] = {}
    for name in written_in(language):
        if not name.startswith(LONG):
            rooms.setdefault(name.split("/")[0], name)
    return list(rooms.values())


@pytest.fixture(scope="module")
def rehearser() -> Iterator[Rehearser]:
    made = Rehearser()
    yield made
    made.close()


def rehearse(rehearser: Rehearser, name: str) -> None:
    """At the sizes that a rehearsal chooses. An interpreter takes longest for many rows, so only the largest of these
    cases may have many."""
    problem, family = representatives()[name]
    cases = sorted(small_cases(problem), key=problem.bytes)
    few = [case for case in cases[:-1] if len(case.dims) == 1 or next(iter(case.dims.values())) <= MANY_ROWS]
    problem = copy.copy(problem)
    problem.checks = (*few, *cases[-1:])  # type: ignore[misc]
    (found,) = rehearser.rehearse(problem, [family.render()], 60.0)
    if found.status == "untried":
        pytest.skip(found.reason)
    assert found.status == "right", found.reason


@pytest.mark.skipif(not shutil.which("g++"), reason="there is no g++")
@pytest.mark.parametrize("name", mostly_in_sweeps(written_in("cuda")[::8], 8))
def test_cuda(name: str, rehearser: Rehearser) -> None:
    rehearse(rehearser, name)


@pytest.mark.parametrize("name", mostly_in_sweeps(sorted(one_of_each_room("triton"), key=quick_first), 8))
def test_triton(name: str, rehearser: Rehearser) -> None:
    pytest.importorskip("triton")
    rehearse(rehearser, name)


def small(problem: Problem) -> list[Case]:
    """A checking case, a small one, and one drawn anew."""
    known = sorted(problem.checks, key=problem.bytes)
    return [random.Random(problem.name).choice(known[:6]), problem.draw_case(random.Random(1))]


@pytest.mark.parametrize("name", registry.names())
def test_pytorch_agrees_with_the_oracle(name: str) -> None:
    if name == "erf" and platform.machine() == "aarch64":
        pytest.skip("PyTorch's erf is off by 5e-6 on ARM processors")
    from presage.problems.on_torch import TorchSampler, namespace

    problem = registry.get(name)
    backend = Backend(namespace, lambda seed, style: TorchSampler(seed, style, "cpu"))
    (eager,) = (kernel for kernel in registry.seed_kernels(problem, "torch") if kernel.name.endswith("eager.py"))
    space: dict[str, Any] = {"__name__": "eager"}
    exec(compile(eager.source, eager.name, "exec"), space)
    for case in small(problem):
        inputs = problem.make_inputs(case, backend.sampler(1, case.values))
        given = tuple([*(x.clone() for x in inputs), *(case.dims[each] for each in problem.parameters)])
        returned = space["custom_kernel"](given)
        outputs = tuple(returned) if isinstance(returned, tuple | list) else (returned,)
        right = solve(problem, case, inputs, backend.xp)
        assert difference(problem, case, right, outputs, backend.xp) is None, case.name
