"""`presage problems [NAME]`, `presage problems new | check NAME` and `presage problems evaluator NAME`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from presage.cli import authoring, documents, terminal
from presage.core.errors import PresageError
from presage.devices import registry as devices
from presage.kernels.kernel import Kernel
from presage.plugins.group import PROBLEMS
from presage.problems import registry
from presage.problems.base import Array, Case, Problem
from presage.problems.external import KERNELBENCH, ONE_FILE, ExternalProblem

_PATIENCE_SECONDS = 60.0
PROJECTS = ("openevolve", "shinka")
"""The projects for whose evolutionary searches `presage problems evaluator` writes evaluators."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    authoring.add_arguments(
        parser, PROBLEMS,
        "show this problem: its signature, cases and kernels; may be the path of a KernelBench file, of a GPU MODE"
        " folder or of a file of your own",
    )  # fmt: skip
    parser.add_argument(
        "--device", default="cpu",
        help="where to run the code of a KernelBench or GPU MODE problem, and evaluators measure (default: cpu)",
    )  # fmt: skip
    others = parser.add_argument_group("evaluator NAME: write an evaluator of this problem for an evolutionary search")
    others.add_argument(
        "--for", dest="project", choices=PROJECTS, default=PROJECTS[0], help="whose search (default: %(default)s)"
    )
    others.add_argument(
        "-o", "--output", type=Path, default=Path("evaluator.py"), metavar="FILE",
        help="the file to write (default: %(default)s)",
    )  # fmt: skip
    others.add_argument(
        "--suffix", choices=[".c", ".cu", ".py"],
        help="what programs are (default: .c on a CPU, else .cu; .py for a problem that a Python file states)",
    )  # fmt: skip
    others.add_argument("--forecaster", default="learned", metavar="NAME", help="(default: %(default)s)")
    others.add_argument(
        "--policy", default="confident", metavar="NAME",
        help="what decides which forecasts are trusted (default: %(default)s)",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    if arguments.words[:1] == ["evaluator"]:
        return _write_evaluator(arguments)
    verb, name = authoring.asked(arguments, PROBLEMS)
    if verb == "new":
        return authoring.new(arguments, PROBLEMS, name)
    if verb == "check":
        return _check(name, arguments)
    if name:
        problem = registry.get(name)
        if isinstance(problem, ExternalProblem):
            return _show_external(problem, arguments)
        document = detail(problem)
        if arguments.json:
            documents.write("problems", {"problems": [document]})
        else:
            _print_detail(problem, document)
        return 0
    problems = [registry.get(name) for name in registry.names()]
    for said in registry.broken().values():
        print(f"presage: {said}", file=sys.stderr)
    if arguments.json:
        documents.write("problems", {"problems": [summary(problem) for problem in problems]})
        return 0
    rows = [
        [p.name, p.room, ", ".join(sorted({k.language for k in registry.seed_kernels(p)})), p.summary]
        for p in sorted(problems, key=lambda p: (p.room, p.name))
    ]
    print(terminal.table(rows, ["problem", "room", "kernels in", "what it computes"]))
    return 0


def _write_evaluator(arguments: argparse.Namespace) -> int:
    from presage.neighbours import evaluators
    from presage.policies import registry as policies

    if len(arguments.words) != 2:
        raise PresageError("write 'presage problems evaluator NAME --for openevolve -o evaluator.py'")
    name = arguments.words[1]
    problem = registry.get(name)
    if isinstance(problem, ExternalProblem):
        name, suffix = str(problem.path.absolute()), ".py"
    else:
        suffix = ".c" if arguments.device.removeprefix("recorded:") == "cpu" else ".cu"
    policies.get(arguments.policy)
    chosen = arguments.suffix or suffix
    text = evaluators.text(arguments.project, name, chosen, arguments.device, arguments.forecaster, arguments.policy)
    if arguments.output.exists():
        raise PresageError(f"{arguments.output} exists; name another file with -o")
    arguments.output.write_text(text, encoding="utf-8")
    document = {"file": str(arguments.output), "problem": name, "for": arguments.project, "suffix": chosen}
    if arguments.json:
        documents.write("problems.evaluator", document)
    else:
        print(f"{arguments.output}: scores {chosen} programs for {name} on {arguments.device}, for {arguments.project}")
    return 0


def _check(name: str, arguments: argparse.Namespace) -> int:
    from presage.authoring import problem_check

    problem = registry.get(name)
    if problem.reference_kernel() is not None:
        raise PresageError(f"{name} is a {problem.room} problem; 'presage measure {name} KERNEL' checks kernels of it")
    return authoring.report(arguments, PROBLEMS, problem.name, problem_check.check(problem))


def summary(problem: Problem) -> dict[str, Any]:
    return {"name": problem.name, "room": problem.room, "summary": problem.summary}


def detail(problem: Problem) -> dict[str, Any]:
    return {
        **summary(problem),
        "signature": problem.signature(_entry(problem)),
        "inputs": [vars(array) for array in problem.inputs],
        "outputs": [vars(array) for array in problem.outputs],
        "parameters": list(problem.parameters),
        "timed": {kind: [_case(problem, case) for case in cases] for kind, cases in problem.timed.items()},
        "checks": [_case(problem, case) for case in problem.checks],
        "kernels": [_kernel(kernel) for kernel in registry.seed_kernels(problem)],
    }


def _entry(problem: Problem) -> str:
    """The name to show for a bare kernel's function: the reference kernel's, else the problem's. Any name works."""
    reference = problem.reference_kernel()
    return reference.header.launches[0].entry if reference else problem.name


def _case(problem: Problem, case: Case) -> dict[str, Any]:
    tolerance, cost = problem.tolerance(case), problem.cost(case)
    return {
        "case": case.name,
        "dims": dict(case.dims),
        "dtype": case.dtype,
        "values": case.values,
        "bytes": cost.bytes,
        "flops": cost.flops,
        "tolerance": {"relative": tolerance.relative, "absolute": tolerance.absolute, "reason": tolerance.reason},
    }


def _kernel(kernel: Kernel) -> dict[str, Any]:
    return {
        "name": kernel.name,
        "language": kernel.language,
        "configurations": sum(1 for _ in kernel.configurations()),
        "tunables": {name: list(values) for name, values in kernel.header.tunables.items()},
    }


def _print_detail(problem: Problem, document: dict[str, Any]) -> None:
    print(f"{problem.name} ({problem.room}): {problem.summary}\n")
    print(f"bare kernel  {document['signature']}")
    data = ", ".join([*(array.name for array in problem.inputs), *problem.parameters])
    print(f"module       custom_kernel(data), data = ({data},), returns {', '.join(a.name for a in problem.outputs)}\n")
    print(f"tolerance    {document['checks'][0]['tolerance']['reason']}\n")
    for kind, cases in document["timed"].items():
        for case in cases:
            cost = f"{case['bytes'] / 1e6:.4g} MB, {case['flops'] / 1e6:.4g} MFLOP at least"
            print(f"timed on {kind}  {case['case']}: {cost}")
    drawn = "and random sizes, new each time" if problem.reference_kernel() is None else "each with new random values"
    print(f"checked on    {'; '.join(case['case'] for case in document['checks'])}; {drawn}\n")
    for kernel in document["kernels"]:
        tunables = ", ".join(kernel["tunables"])
        family = f"{kernel['configurations']} configurations of {tunables}" if tunables else "concrete"
        print(f"{kernel['language']:7} {kernel['name']}  ({family})")


# -- external problems ------------------------------------------------------------------------------------------------


def _show_external(problem: ExternalProblem, arguments: argparse.Namespace) -> int:
    document = external_detail(problem, arguments.device)
    if arguments.json:
        documents.write("problems", {"problems": [document]})
    else:
        _print_external(problem, document)
    return 0


def external_detail(problem: ExternalProblem, where: str) -> dict[str, Any]:
    """Describe an external problem: from its files, and from its code if that runs on the device named `where`."""
    document = _external(problem)
    try:
        device = devices.get(where)
        try:
            with device.posed(problem, _PATIENCE_SECONDS) as posed:
                document |= {"reason": "", "tensors": {case.name: _tensors(posed, case) for case in problem.cases}}
        finally:
            device.close()
    except PresageError as error:
        document |= {"tensors": None, "reason": str(error)}
    return document


def _external(problem: ExternalProblem) -> dict[str, Any]:
    return {
        **summary(problem),
        "path": str(problem.path),
        "timed": {"gpu": [{"case": case.name} for case in problem.timed["gpu"]]},
        "checks": [{"case": case.name} for case in problem.checks],
        "tolerance": problem.tolerance(problem.checks[0]).reason,
        "kernels": [_kernel(kernel) for kernel in registry.seed_kernels(problem)],
    }


def _tensors(problem: Problem, case: Case) -> dict[str, Any]:
    def told(array: Array) -> dict[str, Any]:
        return {"name": array.name, "dtype": problem.dtype(array, case), "shape": problem.shape(array, case)}

    return {
        "inputs": [told(array) | {"written": array.written} for array in problem.inputs],
        "outputs": [told(array) for array in problem.outputs],
        "bytes": problem.bytes(case),
    }


def _print_external(problem: ExternalProblem, document: dict[str, Any]) -> None:
    print(f"{problem.name} ({problem.convention}): {problem.summary}\n")
    print(f"module     {_CALLS.get(problem.convention, 'custom_kernel(data)')}")
    print(f"right      {document['tolerance']}")
    print(f"checked    {'; '.join(case['case'] for case in document['checks'])}; each with new random seeds")
    print(f"timed      {'; '.join(case['case'] for case in document['timed']['gpu'])}\n")
    if document["tensors"] is None:
        print(f"its tensors are not known: {document['reason']}")
        return
    for name, case in document["tensors"].items():
        inputs, outputs = (", ".join(_tensor(tensor) for tensor in case[side]) for side in ("inputs", "outputs"))
        print(f"{name}: {inputs} -> {outputs}; {case['bytes'] / 1e6:.4g} MB at least")


_CALLS = {
    KERNELBENCH: "ModelNew(*get_init_inputs()), called on get_inputs()",
    ONE_FILE: "custom_kernel(data), data = what inputs() returns, returns what reference(*data) returns",
}


def _tensor(tensor: dict[str, Any]) -> str:
    room = " (room for an output)" if tensor.get("written") else ""
    return f"{tensor['name']} {tensor['dtype']}{list(tensor['shape'])}{room}"
