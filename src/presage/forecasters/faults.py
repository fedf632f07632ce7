"""Faults that show before a kernel runs on a GPU: it does not compile, it declares other parameters than it is given,
it writes fewer bytes than the output holds or only adds to it, it changes its inputs, or it gives a wrong result on
the CPU."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

from presage.core.text import plain_name
from presage.forecasters import trace_faults
from presage.forecasters.base import Candidate, Prediction, Task
from presage.forecasters.uniform import NOTHING_KNOWN
from presage.kernels.kernel import Kernel
from presage.problems.base import Problem
from presage.problems.external import GPU_MODE, ExternalProblem
from presage.static.hardware import WARP
from presage.static.report import LaunchReport, StaticReport
from presage.static.trace import KEPT, NO_TENSOR

_BROKEN = {"compile_error": "it does not compile", "runtime_error": "it ends in an error"}
_CERTAIN, _NEARLY, _DOUBTFUL = 0.99, 0.95, 0.5
_LITTLE = 0.6
"""A kernel that writes less than this share of the output's bytes is reported. Walks look at some warps only; by their
count, no kernel or module of the train and validation splits that works and could be judged writes less than 0.67."""
TIMES_AS_LIKELY = {"right": 0.1, "wrong": 70.0}
"""Likelihood ratios of a rehearsal's result: the probability for a kernel that fails on a GPU, divided by that for one
that works. In the train split, rehearsals called 496 of 553 failing kernels wrong, and 1 of 121 working ones."""
MODULE_TIMES_AS_LIKELY = {"right": 0.2, "wrong": 40.0}
"""The same for modules. In the train split, rehearsals called 102 of 159 modules with wrong results wrong and 28 right,
and 1 and 120 of 130 that work."""
_SECTOR = 32
_MOST_NAMES = 3
_MUCH = 0.2
"""The share of a kernel that may be skipped from which a note says so."""
_NUMBER = re.compile(r"^(#define[ \t]+\w+[ \t]+)\d+[ \t]*$", re.MULTILINE)


@dataclass(frozen=True)
class Fault:
    """Why a kernel is expected to fail, and with which probability."""

    p_fail: float
    reason: str


OTHER_COMPILER = "the compiler of what was measured may have used fewer registers"
"""A note on a report. With it, a refused launch is likely, not certain."""


def why_broken(reports: Sequence[StaticReport]) -> str:
    """Why a kernel cannot work according to its reports, with the compiler's first error line; empty if it may work."""
    for report in reports:
        if report.status in _BROKEN and OTHER_COMPILER not in report.notes:
            lines = (report.error or "no reason is given").strip().splitlines()
            first = next((line for line in lines if "error" in line.lower()), lines[0])
            said = "".join(c if c.isprintable() else " " for c in first)  # the message quotes the source
            return f"{_BROKEN[report.status]}: {said}"
    return ""


def warned(task: Task, candidate: Candidate, prediction: Prediction) -> Prediction:
    """The same prediction; where a fault shows, with a higher p_fail and the reason as a note. Other notes name the
    kernels whose values in memory decide how much of them runs."""
    prediction = _with_unknown_length(candidate, _rehearsed(task, candidate, prediction))
    fault = find(task, candidate)
    if fault is None or fault.reason in prediction.notes:
        return prediction
    forecast = prediction.forecast or NOTHING_KNOWN
    forecast = replace(forecast, p_fail=max(forecast.p_fail, fault.p_fail))
    return Prediction(forecast, (*prediction.notes, fault.reason))


def _with_unknown_length(candidate: Candidate, prediction: Prediction) -> Prediction:
    """A loop that memory ends may wait for other blocks, try again until something fits, or go through data of an
    unknown length. Only the last kind is long, and nothing in the code tells which one it is. Blocks without work may
    return at once."""
    launches = [launch for report in candidate.reports for launch in report.launches]
    reasons = {
        "how often a loop of {} runs": [launch.name for launch in launches if launch.unbounded],
        "how much of {} is skipped": [launch.name for launch in launches if launch.skippable > _MUCH],
    }
    for reason, every in reasons.items():
        names = list(dict.fromkeys(map(plain_name, every)))
        told = ", ".join([*names[:_MOST_NAMES], *(["others"] if len(names) > _MOST_NAMES else [])])
        said = f"{reason.format(told)} depends on values that are not known before it runs"
        if names and said not in prediction.notes:
            prediction = replace(prediction, notes=(*prediction.notes, said))
    return prediction


def _rehearsed(task: Task, candidate: Candidate, prediction: Prediction) -> Prediction:
    """The prediction updated by the rehearsal on the CPU, if there was one."""
    rehearsal = candidate.rehearsal
    if rehearsal is None:
        return prediction
    cases = "one small case" if rehearsal.cases == 1 else f"{rehearsal.cases} small cases"
    said = {
        "right": f"on the CPU it computes what it should, in {cases}",
        "wrong": f"on the CPU it computes something else: {rehearsal.reason}",
        "untried": f"it was not tried on the CPU: {rehearsal.reason}",
    }[rehearsal.status]
    if said in prediction.notes:
        return prediction
    notes = (*prediction.notes, said)
    if rehearsal.status == "untried":
        return replace(prediction, notes=notes)
    forecast = prediction.forecast or NOTHING_KNOWN
    times = (MODULE_TIMES_AS_LIKELY if task.problem.is_foreign else TIMES_AS_LIKELY)[rehearsal.status]
    odds = times * forecast.p_fail / max(1e-9, 1.0 - forecast.p_fail)
    p_fail = max(odds / (1.0 + odds), _NEARLY if rehearsal.status == "wrong" else 0.0)
    return Prediction(replace(forecast, p_fail=p_fail), notes)


def find(task: Task, candidate: Candidate) -> Fault | None:
    """The first fault that shows in a kernel's traces, parameters or writes; None if none does. Parameters and writes
    are checked only if the problem's arrays are known."""
    if wrong := _traced(task, candidate):
        return wrong
    if not task.problem.inputs:
        return None
    return _parameters(task.problem, candidate.kernel) or _output(task, candidate)


def _traced(task: Task, candidate: Candidate) -> Fault | None:
    """The first fault in a module's traces. Shapes are compared with the problem's outputs, or with those of the
    reference."""
    wanted = task.anchor.reports if task.problem.is_foreign else [None] * len(task.cases)
    for case, report, anchor in zip(task.cases, candidate.reports, wanted, strict=False):
        trace, expected = report.trace, None
        if trace is not None and (trace.lacks or "").startswith(NO_TENSOR):
            return Fault(_CERTAIN, str(trace.lacks))
        if trace is None or trace.lacks:
            continue
        if task.problem.inputs:
            outputs = task.problem.outputs
            expected = [(task.problem.shape(each, case), task.problem.dtype(each, case)) for each in outputs]
        elif anchor is not None and anchor.trace is not None and not anchor.trace.lacks:
            expected = trace_faults.returned(anchor.trace)
        if expected is not None and (wrong := trace_faults.shapes(trace, expected)):
            return Fault(_CERTAIN, wrong)
        if task.kind == "gpu" and (wrong := trace_faults.on_host(trace)):
            return Fault(_CERTAIN, wrong)
        if wrong := trace_faults.unwritten(trace, _adding(report)):
            return Fault(_NEARLY, wrong)
        if not _is_given_outputs(task.problem) and (
            wrong := trace_faults.given_away(trace, anchor.trace if anchor else None)
        ):
            return Fault(_NEARLY, wrong)
        if trace_faults.is_constant(trace):
            kept = KEPT in trace.notes
            said = f"what it returns does not depend on its inputs{f'; {KEPT}' if kept else ''}"
            return Fault(_NEARLY if kept else _DOUBTFUL, said)
        reference = anchor.trace if anchor is not None else None
        if reference is not None and not reference.lacks and (said := trace_faults.left_out(trace, reference)):
            return Fault(_DOUBTFUL, said)
    return None


def _adding(report: StaticReport) -> set[str]:
    """The kernels that write by atomic operations alone."""
    others = {launch.name for launch in report.launches if not _only_adds(launch)}
    return {launch.name for launch in report.launches} - others


def _adds_alone(report: StaticReport) -> bool:
    """Whether the launches of a kernel write by atomic operations, and nothing else."""
    walks = [launch.executed for launch in report.launches]
    are_known = report.status == "ok" and None not in walks
    stores = any(walk and (walk.get("global_store") or walk.get("async_copy")) for walk in walks)
    return are_known and not stores and any(map(_only_adds, report.launches))


def _only_adds(launch: LaunchReport) -> bool:
    walk = launch.executed or {}
    is_known = not launch.unbounded and not launch.skippable and not walk.get("async_copy")
    return is_known and walk.get("atomic_sectors", 0.0) > 0 and not walk.get("global_store")


def _is_given_outputs(problem: Problem) -> bool:
    """Whether memory for outputs may be among the inputs."""
    return isinstance(problem, ExternalProblem) and problem.convention == GPU_MODE


# -- parameters -------------------------------------------------------------------------------------------------------


def _parameters(problem: Problem, kernel: Kernel) -> Fault | None:
    """Check the parameters of a bare kernel. It is given pointers to the inputs and outputs, then the dimensions of the
    case, then pointers to scratch. It would misread parameters of another kind, or beyond these."""
    if kernel.language not in ("c", "cuda"):
        return None
    arrays, scalars = len(problem.inputs) + len(problem.outputs), len(problem.scalars)
    given = [True] * arrays + [False] * scalars + [True] * len(kernel.header.scratch)
    entries = dict.fromkeys(launch.entry for launch in kernel.header.launches)
    declared = {entry: _declared(_NUMBER.sub(r"\g<1>0", kernel.source), entry) for entry in entries}
    wanted = f"it is called as {problem.signature(next(iter(entries), 'kernel'))}"
    for entry, kinds in declared.items():
        if kinds is not None and len(kinds) > len(given):
            return Fault(_CERTAIN, f"{entry} takes {len(kinds)} parameters and is given {len(given)}: {wanted}")
        if kinds is not None and list(kinds) != given[: len(kinds)]:
            at = next(i for i, (one, other) in enumerate(zip(kinds, given, strict=False)) if one != other)
            what = "a pointer" if given[at] else "an integer"
            return Fault(_CERTAIN, f"parameter {at + 1} of {entry} is given {what} and declared otherwise: {wanted}")
    most = max((arrays + scalars if kinds is None else len(kinds) for kinds in declared.values()), default=arrays)
    if most < arrays:
        return Fault(_CERTAIN, f"it takes {most} pointers, and {arrays} arrays are read and written: {wanted}")
    if most < arrays + scalars:
        return Fault(_NEARLY, f"it does not take {', '.join(problem.scalars[most - arrays :])}: {wanted}")
    return None


@lru_cache(maxsize=1024)
def _declared(source: str, entry: str) -> tuple[bool, ...] | None:
    """For each parameter of a function, whether it is a pointer; None if that cannot be seen, such as behind a macro.

    >>> _declared("void f(const float *x, float y[], int n) { }", "f")
    (True, True, False)
    >>> _declared("void f(ARGUMENTS) { }", "f") is None
    True
    """
    functions = [node for node in _functions(source) if _text(node, "declarator") == entry]
    if len({_text(node, "parameters") for node in functions}) != 1:
        return None
    listed = functions[0].child_by_field_name("parameters").named_children
    parameters = [each for each in listed if each.type != "comment"]
    if [each.text for each in parameters] == [b"void"]:
        return ()
    declarators = [each.child_by_field_name("declarator") for each in parameters]
    if any(each is None for each in declarators):
        return None
    return tuple(each.type in ("pointer_declarator", "array_declarator") for each in declarators)


@cache
def _grammar() -> tuple[Any, Any]:
    """A parser, and a query for function declarators."""
    import tree_sitter
    import tree_sitter_cuda

    grammar = tree_sitter.Language(tree_sitter_cuda.language())
    return tree_sitter.Parser(grammar), tree_sitter.Query(grammar, "(function_declarator) @found")


def _functions(source: str) -> list[Any]:
    import tree_sitter

    parser, query = _grammar()
    return list(tree_sitter.QueryCursor(query).captures(parser.parse(source.encode()).root_node).get("found", []))


def _text(node: Any, field: str) -> str:
    child = node.child_by_field_name(field)
    return "" if child is None else str(child.text.decode())


# -- output -----------------------------------------------------------------------------------------------------------


def _output(task: Task, candidate: Candidate) -> Fault | None:
    """The fault that a kernel writes fewer bytes than the output holds, if all writes are counted: in every case,
    or for Triton in any. In CUDA kernels, warps that were not walked may write more."""
    reports = candidate.reports
    if candidate.kernel.is_bare and any(map(_adds_alone, reports)):
        return Fault(
            _NEARLY, "it only adds to its output, which holds noise before: let it write first what it adds to"
        )
    if not reports or not all(map(_is_countable, reports)):
        return None
    shares = [
        sum(map(_written, report.launches)) / sum(task.problem.array_bytes(each, case) for each in task.problem.outputs)
        for case, report in zip(task.cases, reports, strict=False)
    ]
    share = min(shares) if candidate.kernel.language == "triton" else max(shares)
    if share >= _LITTLE:
        return None
    return Fault(_NEARLY, f"it seems to write no more than {share:.2%} of the output, as its code was walked")


def _is_countable(report: StaticReport) -> bool:
    """Whether a walk counts all writes. It does not if there are atomics, which may distribute work, or asynchronous
    copies, which may write."""
    walks = [launch.executed for launch in report.launches]
    return (
        report.status == "ok"
        and not report.operators
        and bool(walks)
        and not any(launch.unbounded for launch in report.launches)
        and all(walk is not None and not walk.get("atomic") and not walk.get("async_copy") for walk in walks)
    )


def _written(launch: LaunchReport) -> float:
    """Bytes that a launch stores, estimated from the warps that were walked."""
    warps = launch.count * math.prod(launch.grid) * -(-math.prod(launch.block) // WARP)
    return _SECTOR * warps * (launch.executed or {}).get("store_sectors", 0.0)
