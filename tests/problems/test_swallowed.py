"""No tolerance of the catalogue's swallows an answer: what has nothing to do with the inputs is wrong everywhere."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sweeps import mostly_in_sweeps

from presage import Array, Case, Problem
from presage.problems import registry
from presage.problems.backend import NUMPY, Backend
from presage.problems.compare import Answer, difference, solve

pytestmark = pytest.mark.slow

CHEAP_BYTES, CHEAP_FLOPS = 9 << 20, 100_000_000


def cheap_cases(problem: Problem) -> list[Case]:
    """Its timed cases, or where they are too large the largest check, with inputs like theirs."""
    timed = {case.name: case for cases in problem.timed.values() for case in cases}.values()
    cheap = [case for case in timed if problem.bytes(case) < CHEAP_BYTES and problem.flops(case) < CHEAP_FLOPS]
    return cheap or [replace(max(problem.checks, key=problem.bytes), values=next(iter(timed)).values)]


def backend_for(problem: Problem) -> Backend:
    if not problem.needs_torch:
        return NUMPY
    pytest.importorskip("torch")
    from presage.problems.on_torch import TorchSampler, namespace

    return Backend(namespace, lambda seed, style: TorchSampler(seed, style, "cpu"))


def as_output(problem: Problem, case: Case, array: Array, value: Any, xp: Any) -> Any:
    """A value as a kernel would write it, rounded to the type of its output."""
    dtype = problem.dtype(array, case)
    wide = xp.broadcast_to(xp.astype(xp.asarray(value), xp.float64), problem.shape(array, case))
    if not dtype.startswith(("float", "bfloat")):
        wide = xp.round(wide)
    with np.errstate(all="ignore"):
        return xp.astype(wide, getattr(xp, dtype))


def centre(value: Any, xp: Any) -> Any:
    wide = xp.astype(xp.asarray(value), xp.float64)
    finite = wide[xp.isfinite(wide)]
    return xp.mean(finite) if finite.shape[0] else xp.asarray(0.0)


def strangers(right: Answer, other: Answer, xp: Any) -> dict[str, list[Any]]:
    return {
        "zeros": [xp.asarray(0.0)] * len(right.expected),
        "a constant": [centre(value, xp) for value in right.expected],
        "the answer to other inputs": list(other.expected),
    }


@pytest.mark.parametrize("name", mostly_in_sweeps(registry.names()))
def test_what_has_nothing_to_do_with_the_inputs_is_wrong(name: str) -> None:
    problem = registry.get(name)
    backend = backend_for(problem)
    xp = backend.xp
    for case in cheap_cases(problem):
        inputs = [problem.make_inputs(case, backend.sampler(seed, case.values)) for seed in (1, 2)]
        right, other = (solve(problem, case, each, xp) for each in inputs)

        def written(values: Any, case: Case = case) -> list[Any]:
            pairs = zip(problem.outputs, values, strict=True)
            return [as_output(problem, case, array, value, xp) for array, value in pairs]

        good = written(right.expected)
        assert difference(problem, case, right, tuple(good), xp) is None
        for what, values in strangers(right, other, xp).items():
            for i, stranger in enumerate(written(values)):
                outputs = tuple(stranger if j == i else each for j, each in enumerate(good))
                assert difference(problem, case, right, outputs, xp), (
                    f"{case.name}: {what} for {problem.outputs[i].name}"
                )
