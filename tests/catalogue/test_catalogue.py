"""What every problem of the catalogue promises, whatever it computes."""

from __future__ import annotations

import random
from functools import cache
from itertools import islice

import numpy as np
import pytest
from every import of_every

from presage import Array, Case, PresageError, Problem
from presage.problems import registry
from presage.problems.base import storage
from presage.problems.compare import Answer, difference, solve
from presage.problems.sampler import STYLES, Sampler

NAMES = [
    "argmax",
    "batched_matmul",
    "causal_conv1d",
    "conv2d",
    "cross_entropy",
    "cumsum",
    "gelu",
    "histogram",
    "layernorm",
    "matmul",
    "maxpool2d",
    "rmsnorm",
    "softmax",
    "sum",
    "transpose",
    "vector_add",
]

IN_NUMPY = [name for name in registry.names() if not registry.get(name).needs_torch]
IN_TORCH = [name for name in registry.names() if registry.get(name).needs_torch]
each_problem = pytest.mark.parametrize("name", registry.names())
each_in_numpy = pytest.mark.parametrize("name", IN_NUMPY)


def describe(problem: Problem, arrays: tuple[Array, ...], case: Case) -> list[tuple[tuple[int, ...], str]]:
    return [(problem.shape(array, case), problem.dtype(array, case)) for array in arrays]


def make(problem: Problem, case: Case, seed: int = 1) -> tuple[np.ndarray, ...]:
    return problem.make_inputs(case, Sampler(seed, case.values))


@cache
def answer(name: str, index: int) -> Answer:
    problem = registry.get(name)
    case = problem.checks[index]
    return solve(problem, case, make(problem, case))


def right_outputs(name: str, case: Case) -> tuple[Problem, Answer, tuple[np.ndarray, ...]]:
    """The oracle's own outputs, rounded to the type that a kernel would write."""
    problem = registry.get(name)
    right = answer(name, problem.checks.index(case))
    with np.errstate(all="ignore"):
        outputs = tuple(
            _rounded(expected, problem.dtype(array, case)).reshape(problem.shape(array, case))
            for array, expected in zip(problem.outputs, right.expected, strict=True)
        )
    return problem, right, outputs


def _rounded(expected: np.ndarray, dtype: str) -> np.ndarray:
    """A quantised output's right value is expected before it is rounded."""
    whole = np.issubdtype(np.dtype(dtype), np.integer) and expected.dtype.kind == "f"
    return (np.rint(expected) if whole else expected).astype(dtype)


def test_the_catalogue_has_all_its_problems() -> None:
    assert set(NAMES) <= set(registry.names())
    assert len(registry.names()) >= 215
    assert registry.broken() == {}


@pytest.mark.parametrize(
    ("name", "hint"),
    [("sofmax", "did you mean softmax"), ("", "'presage problems' lists them"), ("../softmax", "softmax")],
)
def test_an_unknown_problem_is_explained(name: str, hint: str) -> None:
    with pytest.raises(PresageError, match=f"there is no problem '{name}'; .*{hint}"):
        registry.get(name)


@of_every(registry.names())
def test_it_says_what_it_is(name: str) -> None:
    problem = registry.get(name)
    assert problem.name == name
    assert problem.summary
    assert {"gpu"} <= set(problem.timed) <= {"cpu", "gpu"}
    assert set(problem.parameters) <= set(problem.scalars)
    for case in (*problem.timed.get("cpu", ()), *problem.timed["gpu"], *problem.checks):
        assert tuple(case.dims) == problem.scalars, "every case names the dimensions in the order of the signature"
        assert case.values in STYLES
        assert problem.tolerance(case).reason


@each_in_numpy
def test_inputs_are_as_declared_and_come_from_the_seed_alone(name: str) -> None:
    problem = registry.get(name)
    for case in problem.checks:
        inputs, again, other = (make(problem, case, seed) for seed in (1, 1, 2))
        assert [(x.shape, str(x.dtype)) for x in inputs] == describe(problem, problem.inputs, case)
        assert all(x.flags.c_contiguous for x in inputs)
        assert all(np.array_equal(x, y) for x, y in zip(inputs, again, strict=True))
        if case.values not in ("zeros", "equal") and min(np.unique(x).size for x in inputs) > 100:
            assert not all(np.array_equal(x, y) for x, y in zip(inputs, other, strict=True))


@each_in_numpy
def test_the_right_answer_passes_and_one_wrong_element_fails(name: str) -> None:
    for case in registry.get(name).checks:
        problem, right, outputs = right_outputs(name, case)
        assert [e.shape for e in right.expected] == [shape for shape, _ in describe(problem, problem.outputs, case)]
        assert difference(problem, case, right, outputs) is None, case.name
        for i, array in enumerate(problem.outputs):
            broken = [output.copy() for output in outputs]
            at = broken[i].size // 2
            allowed = np.broadcast_to(right.allowed[i], broken[i].shape).flat[at]
            value = broken[i].flat[at]
            step = 1 if value.dtype.kind != "f" else max(8 * allowed, abs(value) * 1e-2, 1e-3)
            with np.errstate(over="ignore"):
                broken[i].flat[at] = value + step if np.isfinite(value) else 0
            reason = str(difference(problem, case, right, tuple(broken)))
            assert f"1 of {broken[i].size} elements are wrong" in reason, case.name
            assert reason.startswith(f"{array.name}[")


@each_in_numpy
def test_nan_zeros_and_the_wrong_type_fail(name: str) -> None:
    varied = (case for case in registry.get(name).checks if case.values not in ("zeros", "equal", "tiny"))
    case = max(varied, key=registry.get(name).bytes)
    problem, right, outputs = right_outputs(name, case)
    assert difference(problem, case, right, tuple(np.zeros_like(o) for o in outputs)) is not None
    assert difference(problem, case, right, tuple(o.astype(np.float64) for o in outputs)) is not None
    assert difference(problem, case, right, tuple(o.reshape(-1)[:-1] for o in outputs)) is not None
    for output in outputs:
        if output.dtype.kind == "f":
            output.flat[-1] = np.nan
            assert "is nan" in str(difference(problem, case, right, outputs))


@of_every(registry.names())
def test_no_case_is_both_timed_and_checked_beforehand(name: str) -> None:
    problem = registry.get(name)
    cases = [*problem.timed.get("cpu", ()), *problem.checks]
    assert len({case.name for case in cases}) == len(cases)
    assert len({case.name for case in problem.timed["gpu"]}) == len(problem.timed["gpu"])


@each_problem
def test_drawn_cases_can_be_made_and_answered(name: str) -> None:
    problem = registry.get(name)
    drawn = [problem.draw_case(random.Random(seed)) for seed in range(25)]
    assert len({case.name for case in drawn}) > 20, "a kernel must not be able to expect them"
    for i, case in enumerate(drawn):
        assert tuple(case.dims) == problem.scalars
        assert min(case.dims.values()) >= 0
        assert case.values in STYLES
        assert all(min(shape) > 0 for shape, _ in describe(problem, (*problem.inputs, *problem.outputs), case))
        if i < 2 and not problem.needs_torch:
            inputs = make(problem, case)
            assert [(x.shape, str(x.dtype)) for x in inputs] == describe(problem, problem.inputs, case)
            expected = solve(problem, case, inputs).expected
            assert [e.shape for e in expected] == [shape for shape, _ in describe(problem, problem.outputs, case)]


@pytest.mark.parametrize("name", IN_TORCH)
def test_types_that_numpy_lacks_are_answered_on_tensors(name: str) -> None:
    torch = pytest.importorskip("torch")
    from presage.problems.on_torch import TorchSampler, namespace

    problem = registry.get(name)
    for case in (*problem.checks, *(problem.draw_case(random.Random(seed)) for seed in range(2))):
        inputs = problem.make_inputs(case, TorchSampler(1, case.values, "cpu"))
        assert [(tuple(x.shape), str(x.dtype).removeprefix("torch.")) for x in inputs] == describe(
            problem, problem.inputs, case
        )
        right = solve(problem, case, inputs, namespace)
        dtypes = [getattr(torch, problem.dtype(array, case)) for array in problem.outputs]
        outputs = tuple(value.to(dtype) for value, dtype in zip(right.expected, dtypes, strict=True))
        assert difference(problem, case, right, outputs, namespace) is None
        wrong = tuple((output.double() * 1.3 + 1.0).to(output.dtype) for output in outputs)
        assert difference(problem, case, right, wrong, namespace) is not None


@of_every(registry.names())
def test_costs_count_every_array_once(name: str) -> None:
    problem = registry.get(name)
    for case in (*problem.timed.get("cpu", ()), *problem.timed["gpu"]):
        arrays = describe(problem, (*problem.inputs, *problem.outputs), case)
        size = sum(int(np.prod(shape)) * storage(dtype).itemsize for shape, dtype in arrays)
        cost = problem.cost(case)
        # A kernel may read only some of its input (cross_entropy's labels pick one logit), never more than it must.
        assert 0 < cost.bytes <= size
        assert cost.bytes > size // 2
        assert cost.flops >= 0


@of_every(registry.names())
def test_seed_kernels_are_families_after_a_naive_one(name: str) -> None:
    problem = registry.get(name)
    kernels = registry.seed_kernels(problem)
    for language, file in [("cuda", "/naive.cu"), *([("c", "/naive.c")] if "cpu" in problem.timed else [])]:
        naive, *families = (kernel for kernel in kernels if kernel.language == language)
        assert naive.name.endswith(file)
        assert not naive.is_family
        configurations = (values for family in families if family.is_family for values in family.configurations())
        assert len(list(islice(configurations, 12))) == 12
    for kernel in (kernels[0], kernels[-1]):
        assert kernel.render().hash == registry.find_kernel(problem, kernel.name).hash
    for kernel in kernels:
        assert kernel.header.problem == name or not kernel.is_bare
        if kernel.is_bare:
            assert kernel.header.launches[0].entry in kernel.source.split("presage: entry", 1)[1]


FAMILIES = {k.name: k for name in registry.names() for k in registry.seed_kernels(registry.get(name)) if k.is_family}


@pytest.mark.parametrize("name", FAMILIES, ids=lambda name: "/".join(name.split("/")[-3:]))
def test_every_configuration_is_another_kernel(name: str) -> None:
    """For one of the operations that share the family, and some of its configurations."""
    family = FAMILIES[name]
    configurations = list(family.configurations())
    some = random.Random(name).sample(configurations, min(len(configurations), 6))
    near = [c for c in configurations if sum(c[key] != some[0][key] for key in c) == 1]
    kernels = [family.render(values) for values in (*some, *near[:8])]
    assert len({kernel.hash for kernel in kernels}) == len({kernel.name for kernel in kernels})


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ("nosuch.c", "there is no kernel file nosuch.c"),
        ("problem.py", "there is no kernel file problem.py"),
        ("rows.c@THREADS=99", "THREADS cannot be 99; it can be: "),
    ],
)
def test_a_seed_kernel_is_found_by_name_or_explained(spec: str, complaint: str) -> None:
    softmax = registry.get("softmax")
    assert registry.find_kernel(softmax, "naive.c").header.problem == "softmax"
    with pytest.raises(PresageError, match=complaint):
        registry.find_kernel(softmax, spec)


def test_a_kernel_of_another_problem_is_refused() -> None:
    kernel = registry.get("softmax").kernel_folders[0] / "naive.c"
    with pytest.raises(PresageError, match="says it solves 'softmax', not 'gelu'"):
        registry.find_kernel(registry.get("gelu"), str(kernel))
