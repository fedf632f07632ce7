"""Static reports: compiles kernels in a child process, with no device, and reports what their machine code tells."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from presage.core.errors import PresageError
from presage.kernels import cubin, report, sass, static_cuda, static_triton
from presage.kernels.cubin import Resources
from presage.kernels.job import Job
from presage.kernels.report import Launched, StaticReport

_COMPILERS = {"cuda": static_cuda, "triton": static_triton}
_ERROR_LINES = 12


@dataclass(frozen=True)
class _Outcome:
    """A job that compiled (launches) or did not (error), before disassembly."""

    status: str
    launches: tuple[tuple[Launched, Resources], ...] = ()
    error: str | None = None
    operators: Mapping[str, int] | None = None
    notes: tuple[str, ...] = ()


def reports(jobs: Sequence[Job], timeout: float = 60.0, processes: int | None = None) -> list[StaticReport]:
    """A report for every job, in order. `timeout` is per job, in seconds. Many jobs at once cost far less each."""
    for job in jobs:
        if job.kernel.language not in _COMPILERS:
            known = " and ".join(_COMPILERS)
            raise PresageError(
                f"{job.kernel.name} is a {job.kernel.language} kernel; static reports are made of {known} kernels"
            )
    distinct: dict[str, dict[str, Any]] = {}
    keys = []
    for job in jobs:  # one source at several sizes is one request
        request = _COMPILERS[job.kernel.language].request(job)
        cases = request.pop("cases")
        keys.append(json.dumps(request))
        known = distinct.setdefault(keys[-1], {**request, "cases": []})["cases"]
        known += [case for case in cases if case not in known]
    answers = dict(zip(distinct, _run(list(distinct.values()), timeout, processes), strict=True))
    outcomes = [_outcome(job, answers[key]) for job, key in zip(jobs, keys, strict=True)]
    mixes = _mixes(jobs, outcomes)
    return [_report(job, outcome, mixes) for job, outcome in zip(jobs, outcomes, strict=True)]


def _outcome(job: Job, answer: Mapping[str, Any]) -> _Outcome:
    answer = _COMPILERS[job.kernel.language].answered(job, answer)
    if answer["status"] != "ok":
        lines = str(answer["error"]).strip().splitlines()
        return _Outcome(answer["status"], error="\n".join(lines[:_ERROR_LINES]), notes=tuple(answer.get("notes", ())))
    answer = {**answer, "cubins": [base64.b64decode(each) for each in answer["cubins"]]}
    try:
        launches = tuple(_COMPILERS[job.kernel.language].launches(job, answer))
    except static_cuda.LaunchError as error:
        return _Outcome(error.status, error=str(error))
    found = []
    for launched in launches:
        kernels = cubin.read(launched.cubin)
        if launched.name not in kernels:
            names = ", ".join(kernels) or "none"
            hint = 'declare it extern "C" __global__'
            return _Outcome("compile_error", error=f"there is no kernel '{launched.name}' (there is: {names}); {hint}")
        resources = kernels[launched.name]
        if problem := report.launch_problem(launched, resources, job.target):
            return _Outcome("runtime_error", error=f"cannot launch {launched.name}: {problem}")
        found.append((launched, resources))
    return _Outcome("ok", tuple(found), None, answer.get("operators"), tuple(answer.get("notes", ())))


def _mixes(jobs: Sequence[Job], outcomes: Sequence[_Outcome]) -> dict[tuple[str, bytes], sass.Mix]:
    """Disassemble everything, with one run of the disassembler per architecture."""
    codes: dict[str, dict[bytes, None]] = {}
    for job, outcome in zip(jobs, outcomes, strict=True):
        for _, resources in outcome.launches:
            codes.setdefault(job.target.compile_arch, {})[resources.code] = None
    return {
        (arch, code): sass.mix(instructions)
        for arch, pieces in codes.items()
        for code, instructions in zip(pieces, sass.disassemble(list(pieces), arch), strict=True)
    }


def _report(job: Job, outcome: _Outcome, mixes: Mapping[tuple[str, bytes], sass.Mix]) -> StaticReport:
    arch = job.target.compile_arch
    return StaticReport(
        target=job.target.name,
        arch=arch,
        status=outcome.status,
        compiler=_COMPILERS[job.kernel.language].compiler(),
        launches=tuple(
            report.describe(launched, resources, mixes[arch, resources.code], job.target)
            for launched, resources in outcome.launches
        ),
        error=outcome.error,
        operators=outcome.operators or {},
        notes=outcome.notes,
    )


def _run(requests: Sequence[Mapping[str, Any]], timeout: float, processes: int | None) -> list[dict[str, Any]]:
    """Have a child process answer the requests; what it does not live to answer counts as a crash."""
    processes = processes or os.cpu_count() or 1
    document = {"requests": requests, "timeout": timeout, "processes": processes}
    most = max((len(request["cases"]) for request in requests), default=1)
    rounds = -(-len(requests) // processes) * most
    answers = dict(_spawn(json.dumps(document), limit=60.0 + timeout * rounds))
    crash = {"status": "compile_error", "error": "the compiling process ended before it answered"}
    return [answers.get(index, crash) for index in range(len(requests))]


def _spawn(document: str, limit: float) -> Iterator[tuple[int, dict[str, Any]]]:
    """Run the child on the document: an empty environment, a folder of its own, its own process group, a time limit."""
    with tempfile.TemporaryDirectory(prefix="presage-static-") as folder:
        environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": folder,
            "TMPDIR": folder,
            "TRITON_CACHE_DIR": os.path.join(folder, "triton"),
            "CUDA_VISIBLE_DEVICES": "",
            "PYTHONPATH": os.pathsep.join(os.path.abspath(entry) for entry in sys.path),
        }
        child = subprocess.Popen(
            [sys.executable, "-P", "-s", "-m", "presage.kernels.static_child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
        try:
            output, errors = child.communicate(document, timeout=limit)
        except subprocess.TimeoutExpired:
            output, errors = "", ""
        finally:
            _kill_group(child)
    if child.returncode and not output:
        raise PresageError(f"the compiling process failed: {errors.strip()[-1000:] or child.returncode}")
    for line in output.splitlines():
        answer = json.loads(line)
        yield answer.pop("index"), answer


def _kill_group(child: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
