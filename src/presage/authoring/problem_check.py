"""Check a problem without a GPU: its declarations, inputs, oracle, tolerance, costs and kernels."""

from __future__ import annotations

import importlib
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from presage.authoring.finding import BrokenRuleError, Finding, Verdict, apply, failed
from presage.core.errors import PresageError
from presage.devices.base import Effort
from presage.devices.cpu import CpuDevice
from presage.devices.status import Status
from presage.kernels.kernel import Kernel
from presage.problems import registry, static
from presage.problems.backend import NUMPY, Backend
from presage.problems.base import DTYPES, Array, Case, Problem, Tolerance
from presage.problems.compare import Answer, difference, solve
from presage.problems.sampler import STYLES
from presage.static import hardware

_DRAWS = 32
_MOST_ELEMENTS = 1 << 24
"""Cases with larger arrays are not computed in the check."""
_TARGET = "h200"
_EFFORT = Effort(precision=1.0, case_seconds=0.2, timeout=30.0, rounds=3, processes=1, further_processes=0)
_VERDICTS = {Status.OK: Verdict.OK, Status.TIMEOUT: Verdict.SKIPPED, Status.DEVICE_FAULT: Verdict.SKIPPED}
"""Verdicts by status; every other status is a failure. A busy machine is not the kernel's fault."""
_OFF = 1.01


def check(problem: Problem) -> Iterator[Finding]:
    """Apply each rule to a problem and yield the findings as they come. If a declaration is wrong, no other rule is
    applied. Kernels are run only if all other rules hold."""
    bad = False
    for name, rule in (("declarations", _declarations), ("costs", _costs), ("drawn cases", _drawn)):
        for finding in apply(name, lambda rule=rule: rule(problem), problem):  # type: ignore[misc]
            bad = bad or finding.verdict is Verdict.FAILED
            yield finding
        if bad and rule is _declarations:
            return
    backend = _backend(problem)
    if backend is None:
        yield Finding("inputs", Verdict.SKIPPED, "an array has a type that numpy lacks, which needs torch and a GPU")
        return
    for name, numeric in (("inputs", _inputs), ("oracle", _oracle), ("tolerance", _tolerance)):
        for finding in apply(name, lambda numeric=numeric: numeric(problem, backend), problem):  # type: ignore[misc]
            bad = bad or finding.verdict is Verdict.FAILED
            yield finding
        if bad:
            return
    yield from apply("kernels", lambda: _kernels(problem), problem)


def failures(problem: Problem) -> list[str]:
    """The failures of a problem, one line each; empty if there are none."""
    return failed(check(problem))


# -- what it declares -------------------------------------------------------------------------------------------------


def _declarations(problem: Problem) -> str:
    for name in ("name", "summary"):
        _demand(isinstance(getattr(problem, name, None), str) and getattr(problem, name), f"set `{name}` to a text")
    for name in ("inputs", "outputs"):
        arrays = getattr(problem, name, None)
        _demand(
            isinstance(arrays, tuple) and arrays and all(isinstance(each, Array) for each in arrays),
            f'set `{name}` to a tuple of Arrays, such as (Array("x", "n"),)',
        )
    names = [array.name for array in (*problem.inputs, *problem.outputs)]
    _demand(all(name.isidentifier() for name in names), f"an array's name must be a C identifier: {', '.join(names)}")
    _demand(len({*names}) == len(names), f"two arrays have one name: {', '.join(names)}")
    timed = getattr(problem, "timed", None)
    _demand(
        isinstance(timed, dict) and timed and {*timed} <= {"cpu", "gpu"} and all(map(_are_cases, timed.values())),
        'set `timed` to the cases of each kind of device, such as {"cpu": (Case({"n": 4096}),)}',
    )
    _demand(_are_cases(getattr(problem, "checks", None)), 'set `checks` to a tuple of Cases, such as (Case({"n": 1}),)')
    cases = _cases(problem)
    for case in cases:
        _check_case(problem, case)
    return f"{len(problem.inputs)} inputs, {len(problem.outputs)} outputs, {len(cases)} cases"


def _are_cases(cases: object) -> bool:
    return isinstance(cases, tuple) and bool(cases) and all(isinstance(case, Case) for case in cases)


def _cases(problem: Problem) -> list[Case]:
    return [*problem.checks, *(case for cases in problem.timed.values() for case in cases)]


def _check_case(problem: Problem, case: Case) -> None:
    """A case must have every size and parameter, valid shapes, and known types and styles."""
    what = f"the case '{case.name}'"
    first = problem.scalars
    _demand(tuple(case.dims) == first, f"{what} has the sizes {', '.join(case.dims)}; others have {', '.join(first)}")
    for name in problem.parameters:
        _demand(name in case.dims, f"{what} lacks the parameter '{name}'")
    _demand(case.values in STYLES, f"{what} has the style '{case.values}'; styles are {', '.join(STYLES)}")
    for array in (*problem.inputs, *problem.outputs):
        dtype = problem.dtype(array, case)
        _demand(dtype in DTYPES, f"{what}: {array.name} has the type '{dtype}'; types are {', '.join(DTYPES)}")
        shape = problem.shape(array, case)
        _demand(min(shape) > 0, f"{what}: {array.name} has the shape {list(shape)}; every length must be 1 or more")


def _costs(problem: Problem) -> str:
    for case in _cases(problem):
        cost = problem.cost(case)
        for what, count, least in (("bytes", cost.bytes, 1), ("flops", cost.flops, 0)):
            said = f"{what} of the case '{case.name}' is {count!r}; it must be a whole number, {least} or more"
            _demand(isinstance(count, int) and count >= least, said)
    timed = next(iter(problem.timed.values()))[0]
    cost = problem.cost(timed)
    return f"{cost.bytes / 1e6:.4g} MB and {cost.flops / 1e6:.4g} MFLOP at least for '{timed.name}'"


def _drawn(problem: Problem) -> Iterator[Finding]:
    drawn = [problem.draw_case(random.Random(seed)) for seed in range(_DRAWS)]
    _demand(all(isinstance(case, Case) for case in drawn), "draw_case must return a Case")
    for case in drawn:
        _check_case(problem, case)
    again = [problem.draw_case(random.Random(seed)) for seed in range(_DRAWS)]
    _demand(drawn == again, "draw_case gave two cases for one seed; take all chance from `rng`")
    sizes = {tuple(case.dims.values()) for case in drawn}
    said = f"{len(sizes)} sizes in {_DRAWS} draws; styles: {', '.join(sorted({case.values for case in drawn}))}"
    few = len(sizes) < _DRAWS // 4
    yield Finding("drawn cases", Verdict.WARNING if few else Verdict.OK, said + ("; draw more sizes" if few else ""))


def _demand(holds: object, otherwise: str) -> None:
    if not holds:
        raise BrokenRuleError(otherwise)


# -- what it computes -------------------------------------------------------------------------------------------------


def _backend(problem: Problem) -> Backend | None:
    if not problem.needs_torch:
        return NUMPY
    if not find_spec("torch") or not importlib.import_module("torch").cuda.is_available():
        return None
    backend: Backend = importlib.import_module("presage.problems.on_torch").TORCH
    return backend


def _small(problem: Problem) -> list[Case]:
    """The problem's checks and some drawn cases, without those that are too large to compute quickly."""
    drawn = [problem.draw_case(random.Random(seed)) for seed in range(4)]
    distinct = {case.name: case for case in (*problem.checks, *drawn)}.values()
    return [case for case in distinct if max(map(math.prod, _shapes(problem, case))) <= _MOST_ELEMENTS]


def _shapes(problem: Problem, case: Case) -> list[tuple[int, ...]]:
    return [problem.shape(array, case) for array in (*problem.inputs, *problem.outputs)]


def _inputs(problem: Problem, backend: Backend) -> str:
    for case in [*_small(problem)[:2], *(replace(problem.checks[0], values=style) for style in STYLES)]:
        what = f"for the case '{case.name}' make_inputs"
        made, again = (problem.make_inputs(case, backend.sampler(7, case.values)) for _ in range(2))
        _demand(isinstance(made, tuple), f"{what} returned a {type(made).__name__}; it must return a tuple")
        _demand(len(made) == len(problem.inputs), f"{what} made {len(made)} arrays; inputs has {len(problem.inputs)}")
        for array, one, other in zip(problem.inputs, made, again, strict=True):
            _check_array(problem, case, array, one, backend, what)
            _demand(bool(backend.xp.all(one == other)), f"{what} made {array.name} at random; use the sampler alone")
    return f"of {len(STYLES)} styles, the same for the same seed"


def _check_array(problem: Problem, case: Case, array: Array, made: Any, backend: Backend, what: str) -> None:
    wanted, dtype = problem.shape(array, case), problem.dtype(array, case)
    _demand(hasattr(made, "dtype") and hasattr(made, "shape"), f"{what} made {array.name} a {type(made).__name__}")
    said = f"{what} made {array.name} {made.dtype}{list(made.shape)}, and not {dtype}{list(wanted)}"
    _demand(tuple(made.shape) == wanted and made.dtype == getattr(backend.xp, dtype), said)


def _oracle(problem: Problem, backend: Backend) -> Iterator[Finding]:
    not_numbers = []
    for case in _small(problem):
        what = f"for the case '{case.name}' the oracle"
        inputs = problem.make_inputs(case, backend.sampler(7, case.values))
        with np.errstate(all="ignore"):
            outputs = problem.oracle(backend.xp, case, *_wide(inputs, backend.xp))
        _demand(isinstance(outputs, tuple), f"{what} returned a {type(outputs).__name__}; it must return a tuple")
        count = f"{what} returned {len(outputs)} arrays; outputs has {len(problem.outputs)}"
        _demand(len(outputs) == len(problem.outputs), count)
        for array, output in zip(problem.outputs, outputs, strict=True):
            wanted = problem.shape(array, case)
            _demand(hasattr(output, "shape"), f"{what} returned {array.name} as a {type(output).__name__}")
            given = f"{what} gave {array.name} the shape {list(output.shape)}; outputs says {list(wanted)}"
            _demand(_fits(tuple(output.shape), wanted), given)
        if any(bool(backend.xp.any(backend.xp.isnan(output))) for output in outputs if _is_float(output, backend.xp)):
            not_numbers.append(case.name)
    if not_numbers:
        said = f"some outputs are not numbers for: {'; '.join(not_numbers)}. A kernel must then give NaN there, too"
        yield Finding("oracle", Verdict.WARNING, said)
    else:
        yield Finding("oracle", Verdict.OK, f"shapes and types are right on {len(_small(problem))} cases")


def _wide(arrays: Sequence[Any], xp: Any) -> list[Any]:
    return [xp.astype(array, xp.float64) if _is_float(array, xp) else array for array in arrays]


def _is_float(array: Any, xp: Any) -> bool:
    return bool(xp.isdtype(array.dtype, "real floating"))


def _is_real(dtype: str) -> bool:
    return dtype.startswith(("float", "bfloat"))


def _fits(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Whether an array of this shape can be broadcast to the wanted shape."""
    try:
        return np.broadcast_shapes(shape, wanted) == wanted
    except ValueError:
        return False


def _tolerance(problem: Problem, backend: Backend) -> Iterator[Finding]:
    passed: dict[str, list[str]] = {"zeros": [], "off": []}
    cases = _small(problem)
    for case in cases:
        allowed = problem.tolerance(case)
        _demand(isinstance(allowed, Tolerance), "tolerance must return a Tolerance")
        _demand(allowed.relative >= 0 and allowed.absolute >= 0, f"a tolerance cannot be negative: {allowed}")
        _demand(str(allowed.reason).strip(), "say in the tolerance's reason why it is as large as it is")
        answer = solve(problem, case, problem.make_inputs(case, backend.sampler(7, case.values)), backend.xp)
        said = difference(problem, case, answer, _outputs(problem, case, answer, backend.xp, 1.0), backend.xp)
        _demand(said is None, f"the oracle's own answer, rounded to the outputs' types, fails '{case.name}': {said}")
        for name, factor in (("zeros", 0.0), ("off", _OFF)):
            wrong = _outputs(problem, case, answer, backend.xp, factor)
            if difference(problem, case, answer, wrong, backend.xp) is None:
                passed[name].append(case.name)
    said = f"all-zero outputs pass {len(passed['zeros'])} of {len(cases)} cases"
    _demand(len(passed["zeros"]) < len(cases), f"{said}; the tolerance is too large, or the outputs too small")
    yield Finding("tolerance", Verdict.OK, f"{problem.tolerance(cases[0]).relative:g} of the magnitude; {said}")
    if len(passed["off"]) == len(cases) and any(_is_real(problem.dtype(each, cases[0])) for each in problem.outputs):
        yield Finding("tolerance", Verdict.WARNING, "outputs that are 1 % off pass every case; is it too large?")


def _outputs(problem: Problem, case: Case, answer: Answer, xp: Any, factor: float) -> tuple[Any, ...]:
    """The expected outputs multiplied by a factor, in the types that a kernel would return."""
    made = []
    for array, expected in zip(problem.outputs, answer.expected, strict=True):
        dtype = problem.dtype(array, case)
        whole = xp.broadcast_to(xp.asarray(expected), problem.shape(array, case))
        with np.errstate(all="ignore"):
            if factor == 0.0:
                whole = xp.zeros_like(whole)
            elif _is_float(whole, xp):
                whole = whole * factor if _is_real(dtype) else xp.round(whole)
            made.append(xp.astype(whole, getattr(xp, dtype)))
    return tuple(made)


# -- its kernels ------------------------------------------------------------------------------------------------------


def _kernels(problem: Problem) -> Iterator[Finding]:
    kernels = registry.seed_kernels(problem)
    files = [kernel.family for kernel in kernels]
    for file, where in (("naive.c", "cpu"), ("eager.py", "gpu")):
        if where in problem.timed and file not in files:
            said = f"there is no {file} in {problem.kernel_folders[0]}: speedups on a {where} need --anchor"
            yield Finding("kernels", Verdict.WARNING, said)
    on_cpu = [kernel for kernel in kernels if kernel.language in CpuDevice.languages and not kernel.compiles_by_torch]
    yield from _run("cpu", problem, on_cpu, _measured)
    compiled = [kernel for kernel in kernels if kernel.language in ("cuda", "triton")]
    yield from _run("gpu", problem, compiled, _compiled)


def _run(
    kind: str, problem: Problem, kernels: Sequence[Kernel], run: Callable[[Problem, list[Kernel]], Iterator[Finding]]
) -> Iterator[Finding]:
    """Run the kernels for one kind of device. Kernels that need something not installed here are skipped, not
    failed."""
    if not find_spec("torch"):
        for kernel in kernels:
            if kernel.language in ("torch", "triton"):
                yield Finding(kernel.family, Verdict.SKIPPED, "torch is not installed")
        kernels = [kernel for kernel in kernels if kernel.language not in ("torch", "triton")]
    if not kernels or kind not in problem.timed:
        return
    try:
        yield from run(problem, [kernel.render() for kernel in kernels])
    except PresageError as error:
        yield Finding(", ".join(kernel.family for kernel in kernels), Verdict.SKIPPED, str(error))


def _measured(problem: Problem, kernels: list[Kernel]) -> Iterator[Finding]:
    device = CpuDevice()
    try:
        for each in device.measure(problem, kernels, _EFFORT, lambda doing, share: None):
            said = "agrees with the oracle on the CPU"
            verdict = _VERDICTS.get(each.status, Verdict.FAILED)
            if verdict is not Verdict.OK:
                said = f"{each.status}: {each.reason}\n{each.output}".strip()
            yield Finding(each.kernel.family, verdict, said)
    finally:
        device.close()


def _compiled(problem: Problem, kernels: list[Kernel]) -> Iterator[Finding]:
    cases = problem.timed["gpu"][:1]
    for kernel, (report,) in zip(kernels, static.reports(problem, kernels, cases, hardware.find(_TARGET)), strict=True):
        right = report.status == "ok"
        said = f"compiles for {_TARGET}; not run" if right else f"{report.status}: {report.error}"
        yield Finding(Path(kernel.family).name, Verdict.OK if right else Verdict.FAILED, said)
