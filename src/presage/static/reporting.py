"""Makes static reports: compiles kernels in child processes, without a device, and analyses their machine code."""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from presage.core.errors import UNREADABLE, PresageError
from presage.kernels.kernel import Kernel
from presage.static import cache, compiling, cubin, cuda_source, modules, pipes, report, roofline, sass
from presage.static.cubin import Resources
from presage.static.launch_request import Job
from presage.static.report import Launched, StaticReport
from presage.static.trace import Trace

_COMPILERS = {"cuda": cuda_source, "triton": modules, "torch": modules}
_LOADED_FROM = re.compile(r"[^\s\"'(]*\bkernel\.(cu(?=\()|py\b)")
"""The name under which compilers and Python see a kernel's source."""
_IN_A_HEADER = re.compile(r"^\s*/\S*\(\d+\): error", re.MULTILINE)
_ERROR_LINES, _ERROR_SIGNS, _NOTES = 12, 400, 20


@dataclass(frozen=True)
class _Outcome:
    """The result of a job before disassembly: launches if it compiled, else an error."""

    status: str
    launches: tuple[tuple[Launched, Resources], ...] = ()
    error: str | None = None
    trace: Trace | None = None
    notes: tuple[str, ...] = ()


_UNREADABLE = _Outcome("compile_error", error="the compiling process gave no answer that can be read")


def reports(
    jobs: Sequence[Job], timeout: float = 60.0, processes: int | None = None, **limits: float
) -> list[StaticReport]:
    """A report for every job, in order. `timeout` is in seconds per job. Many jobs at once cost far less each.

    limits: further limits of `compiling.answers`."""
    for job in jobs:
        if job.kernel.language not in _COMPILERS:
            known = " and ".join(_COMPILERS)
            raise PresageError(
                f"{job.kernel.name} is a {job.kernel.language} kernel; static reports are made of {known} kernels"
            )
    requests = [_COMPILERS[job.kernel.language].request(job) for job in jobs]
    names = [
        cache.name_of(job, request, _COMPILERS[job.kernel.language].compiler())
        for job, request in zip(jobs, requests, strict=True)
    ]
    found = cache.find(names)
    missing = [i for i, name in enumerate(names) if name not in found]
    made = _made([jobs[i] for i in missing], [requests[i] for i in missing], timeout, processes, **limits)
    fresh = {names[i]: report for i, report in zip(missing, made, strict=True)}
    cache.add(fresh)
    return [found.get(name) or fresh[name] for name in names]


def _made(
    jobs: Sequence[Job], requests: Sequence[dict[str, Any]], timeout: float, processes: int | None, **limits: float
) -> list[StaticReport]:
    distinct: dict[str, dict[str, Any]] = {}
    keys = []
    for request in requests:  # one source at several sizes is one request
        cases = request.pop("cases")
        keys.append(json.dumps(request))
        known = distinct.setdefault(keys[-1], {**request, "cases": []})["cases"]
        known += [case for case in cases if case not in known]
    answers = dict(zip(distinct, compiling.answers(list(distinct.values()), timeout, processes, **limits), strict=True))
    outcomes = [_outcome(job, answers[key]) for job, key in zip(jobs, keys, strict=True)]
    mixes = _mixes(jobs, outcomes)
    return [_report(job, outcome, mixes) for job, outcome in zip(jobs, outcomes, strict=True)]


def _outcome(job: Job, answer: Mapping[str, Any]) -> _Outcome:
    try:
        return _compiled(job, answer)
    except cuda_source.LaunchError as error:
        return _Outcome(error.status, error=str(error))
    except UNREADABLE:
        return _UNREADABLE


def _compiled(job: Job, answer: Mapping[str, Any]) -> _Outcome:
    answer = _COMPILERS[job.kernel.language].answered(job, answer)
    notes = tuple(_printable(note) for note in answer.get("notes", ()))[:_NOTES]
    if answer.get("status") in report.STATUSES and answer["status"] != "ok":
        said = _LOADED_FROM.sub(lambda _: job.kernel.family, _printable(answer.get("error")))
        return _Outcome(answer["status"], error=_hint(job.kernel, said) + said, notes=notes)
    if "trace" in answer:
        answer = {**answer, "trace": Trace.from_document(answer["trace"])}
        notes = tuple(_printable(note) for note in answer["trace"].notes)[:_NOTES]
    else:
        answer = {**answer, "cubins": [base64.b64decode(each) for each in answer["cubins"]]}
    found = []
    for launched in _COMPILERS[job.kernel.language].launches(job, answer):
        kernels = cubin.read(launched.cubin)
        if launched.name not in kernels:
            names = ", ".join(map(_printable, kernels)) or "none"
            hint = 'declare it extern "C" __global__'
            return _Outcome("compile_error", error=f"there is no kernel '{launched.name}' (there is: {names}); {hint}")
        resources = kernels[launched.name]
        if problem := report.launch_problem(launched, resources, job.target):
            return _Outcome("runtime_error", error=f"cannot launch {launched.name}: {problem}")
        found.append((launched, resources))
    if job.kernel.language == "triton" and not found:
        notes = ("the host code launched no Triton kernel", *notes)
    return _Outcome("ok", tuple(found), None, _priced(answer), notes)


def _hint(kernel: Kernel, error: str) -> str:
    """What to do if a header does not compile because it uses a tunable's name, which is a macro in a bare kernel."""
    used = [name for name in kernel.values if re.search(rf"\b{re.escape(name)}\b", error)]
    if not kernel.is_bare or not used or not _IN_A_HEADER.search(error):
        return ""
    return f"the tunable {used[0]} is a macro, also in the headers that the file includes: a longer name may help\n"


def _priced(answer: Mapping[str, Any]) -> Trace | None:
    """The trace with the costs of its launches, but without its machine code, which the launches' reports describe."""
    if "trace" not in answer:
        return None
    trace: Trace = answer["trace"]
    steps = tuple(
        roofline.priced(step, executed) for step, executed in zip(trace.steps, answer["executed"], strict=True)
    )
    return replace(trace, steps=steps, cubins=())


def _operators(trace: Trace | None) -> dict[str, int]:
    """The number of calls of each torch operator that does work."""
    names = [step.name for step in trace.steps if step.kind in ("operator", "copy")] if trace else []
    return dict(Counter(name.removeprefix("aten::").partition(".")[0] for name in names))


def _printable(error: object) -> str:
    """The first lines of a message from a compiler or foreign code, shortened, and without characters that could
    disturb a terminal."""
    lines = str(error).strip().splitlines()[:_ERROR_LINES]
    return "\n".join("".join(sign if sign.isprintable() else "?" for sign in line[:_ERROR_SIGNS]) for line in lines)


def _mixes(jobs: Sequence[Job], outcomes: Sequence[_Outcome]) -> dict[tuple[str, bytes], tuple[sass.Mix, pipes.Bodies]]:
    """Disassemble all machine code, with one call per architecture. Code that cannot be read is left out."""
    codes: dict[str, dict[bytes, None]] = {}
    for job, outcome in zip(jobs, outcomes, strict=True):
        for _, resources in outcome.launches:
            codes.setdefault(job.target.compile_arch, {})[resources.code] = None
    return {
        (arch, code): (sass.mix(instructions), pipes.bodies(instructions))
        for arch, pieces in codes.items()
        for code, instructions in zip(pieces, sass.disassemble(list(pieces), arch), strict=True)
        if instructions is not None
    }


def _report(
    job: Job, outcome: _Outcome, mixes: Mapping[tuple[str, bytes], tuple[sass.Mix, pipes.Bodies]]
) -> StaticReport:
    arch = job.target.compile_arch
    if any((arch, resources.code) not in mixes for _, resources in outcome.launches):
        outcome = _Outcome("compile_error", error="its machine code cannot be read")
    try:
        launches = tuple(
            report.describe(launched, resources, mix, job.target, code)
            for launched, resources in outcome.launches
            for mix, code in [mixes[arch, resources.code]]
        )
    except UNREADABLE:
        outcome, launches = _UNREADABLE, ()
    return StaticReport(
        target=job.target.name,
        arch=arch,
        status=outcome.status,
        compiler=_COMPILERS[job.kernel.language].compiler(),
        launches=launches,
        error=outcome.error,
        operators=_operators(outcome.trace),
        trace=outcome.trace,
        notes=outcome.notes,
    )
