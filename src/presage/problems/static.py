"""Static reports of a problem's kernels. The problem gives the shapes and dtypes of the inputs at each case."""

from __future__ import annotations

from collections.abc import Sequence

from presage.kernels.kernel import Kernel
from presage.problems.base import Case, Problem
from presage.problems.external import ExternalProblem
from presage.static import reporting
from presage.static.hardware import Hardware
from presage.static.launch_request import Job
from presage.static.report import StaticReport
from presage.static.trace import TensorSpec


def job(problem: Problem, kernel: Kernel, case: Case, target: Hardware, tuned: int = 0) -> Job:
    """The kernel to compile, and how it is launched for this case. tuned: see Job."""
    if isinstance(problem, ExternalProblem):
        return Job(kernel, case.dims, (), target, files=problem.files, tuned=tuned)
    inputs = tuple(TensorSpec(problem.shape(array, case), problem.dtype(array, case)) for array in problem.inputs)
    parameters = tuple(case.dims[name] for name in problem.parameters)
    return Job(kernel, case.dims, inputs, target, parameters, tuned=tuned)


def is_reported(problem: Problem, kernel: Kernel) -> bool:
    """Whether compiling the kernel, or tracing its host code, gives a report that a forecaster can use."""
    return kernel.language in ("cuda", "triton") or not kernel.is_bare


def reports(
    problem: Problem, kernels: Sequence[Kernel], cases: Sequence[Case], target: Hardware, timeout: float = 60.0
) -> list[list[StaticReport]]:
    """Return a report of every kernel at every case: one list per kernel, in the order of the cases."""
    return of_several([(problem, kernel, cases) for kernel in kernels], target, timeout)


def of_several(
    wanted: Sequence[tuple[Problem, Kernel, Sequence[Case]]],
    target: Hardware,
    timeout: float = 60.0,
    processes: int | None = None,
) -> list[list[StaticReport]]:
    """The same for kernels of several problems. One call for all of them costs less than one call each."""
    jobs = [job(problem, kernel, case, target) for problem, kernel, cases in wanted for case in cases]
    found = iter(reporting.reports(jobs, timeout, processes))
    return [[next(found) for _ in cases] for _, _, cases in wanted]


def as_tuned(
    problem: Problem, wanted: Sequence[tuple[Kernel, int]], cases: Sequence[Case], target: Hardware
) -> list[list[StaticReport]]:
    """A report at every case of modules whose autotuners take the configuration of this number."""
    jobs = [job(problem, kernel, case, target, tuned) for kernel, tuned in wanted for case in cases]
    found = iter(reporting.reports(jobs, 60.0, None))
    return [[next(found) for _ in cases] for _ in wanted]
