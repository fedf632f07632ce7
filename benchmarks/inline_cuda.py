"""Count the modules with inline CUDA that can be traced without a GPU, why others cannot, and the time this takes.

    .venv/bin/python benchmarks/inline_cuda.py h100.json --target sm_90a

The file is JSON or JSON lines, such as CUDA-L1's (github.com/deepreinforce-ai/CUDA-L1, optimized_cuda_code). Every text
in it that defines ModelNew and get_inputs and builds an extension is run once. Many of CUDA-L1's never build, because
cpp_sources does not declare the names in `functions`, or because newer versions of torch reject `x.type()` in
AT_DISPATCH. `--as-meant` fixes both.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from presage.cli.terminal import table
from presage.sandbox import processes, rules, scratch
from presage.sandbox.launch import Gate
from presage.sandbox.processes import Task
from presage.static import compiling, inline_cuda

DEVICE = {
    "name": "H200",
    "multiprocessors": 132,
    "shared_per_block": 227 << 10,
    "shared_per_sm": 228 << 10,
    "threads_per_sm": 2048,
    "memory": 1 << 37,
    "l2": 50 << 20,
}
WANTED = re.compile(r"\b(?:cpp_extension|RawKernel|RawModule|_compile_kernel)\b")
OLD_DISPATCH = re.compile(r"(AT_DISPATCH_\w+\(\s*[\w.]+)\.type\(\)")
REASONS = {
    "`functions` are not declared in cpp_sources": r"cpp_sources must declare",
    "`functions` and PYBIND11_MODULE at once": r"bound twice",
    "AT_DISPATCH of x.type(), which this torch no longer takes": r"DeprecatedTypeProperties",
    "a kernel or its launch in cpp_sources": r"main\.cpp.*(?:blockIdx|threadIdx|primary-expression before .<)",
    "a kernel does not compile": r"^kernel ",
    "host code does not compile": r"error:",
    "host code is not whole": r"undefined symbol|binds no functions",
    "not supported": r"not supported",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path)
    parser.add_argument("--target", default="sm_90a")
    parser.add_argument("--as-meant", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    sources = list(dict.fromkeys(_sources(_read(options.path))))
    started = time.monotonic()
    inline_cuda.precompile()
    print(f"precompiling took {time.monotonic() - started:.1f} s")
    answers = []
    for number, source in enumerate(sources):
        answers.append(_run(source, options.target, options.as_meant))
        if options.verbose:
            print(number, _outcome(answers[-1]), answers[-1])
    _show(answers)


def _read(path: Path) -> Any:
    text = path.read_text()
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]


def _sources(found: Any) -> Iterator[str]:
    if isinstance(found, str):
        if "class ModelNew" in found and "def get_inputs" in found and WANTED.search(found):
            yield found
    elif isinstance(found, dict | list):
        for each in found.values() if isinstance(found, dict) else found:
            yield from _sources(each)


def _show(answers: list[dict[str, Any]]) -> None:
    counts = Counter(_outcome(answer) for answer in answers)
    rows = [[outcome, str(count), f"{100 * count / len(answers):.0f} %"] for outcome, count in counts.most_common()]
    print(table(rows, ["outcome", "modules", "share"]))
    for what, which in (
        ("all modules", answers),
        ("those that launch", [each for each in answers if each["launches"]]),
    ):
        if which:
            seconds, cpu = (sum(each[key] for each in which) / len(which) for key in ("seconds", "cpu"))
            print(f"{what}: {seconds:.1f} s each in the mean, {cpu:.1f} s of processor time")


def _outcome(answer: dict[str, Any]) -> str:
    if answer["launches"]:
        return "launches recorded"
    said = "\n".join(answer["failures"]) or answer["error"] or ""
    for reason, sign in REASONS.items():
        if re.search(sign, said, re.MULTILINE | re.DOTALL):
            return f"refused: {reason}"
    if answer["error"]:
        return f"error: {answer['error'].splitlines()[0][:80]}"
    return "does not use its extension at these sizes" if answer["built"] else "builds no extension"


# -- in the child -----------------------------------------------------------------------------------------------------


def _run(source: str, target: str, as_meant: bool) -> dict[str, Any]:
    folder = scratch.make("presage-inline-")
    request = {"compiler": "triton", "source": source, "target": target, "as_meant": as_meant}
    Path(folder, "request.json").write_text(json.dumps(request))
    zygote = processes.zygote("benchmark", ("presage.static.child:warm_up_triton", "inline_cuda"))
    reader, writer = os.pipe()
    environment = rules.environment(folder) | compiling._for_inline_cuda(request)
    environment["TRITON_CACHE_DIR"] = os.path.join(folder, "triton")
    task = Task("inline_cuda:answer", compiling._rules("triton", folder, request), environment, (writer,))
    process = processes.fork(zygote, task)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        said = pipe.read()
    process.wait()
    scratch.remove(folder)
    died = {
        "error": f"its process ended with {process.status()}",
        "launches": 0,
        "failures": [],
        "seconds": 0,
        "cpu": 0,
    }
    return json.loads(said) if said else died | {"built": True}


class Counting:
    """A launcher that only counts launches."""

    def __init__(self) -> None:
        self.launches = 0

    def launch(self, *_: Any) -> None:
        self.launches += 1

    def copy(self, *_: Any) -> None: ...

    def fill(self, *_: Any) -> None: ...

    def sync(self, *_: Any) -> None: ...


def answer(settings: dict[str, Any], gate: Gate) -> None:
    """Run the module in the working folder, inside the sandbox, and send the result through the pipe."""
    (writer,) = settings["descriptors"]
    gate.close()
    started, before = time.monotonic(), _processor_seconds()
    found = _traced(json.loads(Path("request.json").read_text()))
    spent = {"seconds": time.monotonic() - started, "cpu": _processor_seconds() - before}
    with os.fdopen(writer, "w") as pipe:
        json.dump(found | spent, pipe)
    os._exit(0)


def _processor_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _traced(request: dict[str, Any]) -> dict[str, Any]:
    import torch
    from presage.static.launch_tracer import host_code, launches, pretended_gpu
    from torch._subclasses.fake_tensor import FakeTensorMode

    about, launcher, built = {"capability": [9, 0], "device": DEVICE}, Counting(), []
    pretended_gpu.pretend(about, launches.LaunchTracer(about))
    inline_cuda.install(launcher, target_arch=request["target"], has_gpu=False)
    _watch(built, request["as_meant"])
    error = None
    try:
        with FakeTensorMode(allow_non_fake_inputs=True), pretended_gpu.WithoutGpu(), torch.no_grad():
            module = host_code.load(request["source"])
            call = host_code.entry(module, None)
            inputs = [each.cuda() if isinstance(each, torch.Tensor) else each for each in module.get_inputs()]
            call(inputs)
    except BaseException as found:
        error = f"{type(found).__name__}: {found}"
    return {"error": error, "launches": launcher.launches, "failures": inline_cuda.failures(), "built": bool(built)}


def _watch(built: list[Any], as_meant: bool) -> None:
    """Wrap `load_inline`: append what it builds to `built`, and fix the sources first if `as_meant` is set."""
    from torch.utils import cpp_extension

    ours = cpp_extension.load_inline

    def load_inline(
        name: str, cpp_sources: Any = "", cuda_sources: Any = "", functions: Any = None, **rest: Any
    ) -> Any:
        cpp, cuda = ("\n".join(each) if isinstance(each, list) else each or "" for each in (cpp_sources, cuda_sources))
        if as_meant and "PYBIND11_MODULE" in cpp + cuda:
            functions = None
        named = [functions] if isinstance(functions, str) else list(functions or ())
        if as_meant and not all(each in cpp for each in named):
            bound = "".join(f'm.def("{each}", &{each});' for each in named)
            cuda, functions = f"{cuda}\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{ {bound} }}", None
        if as_meant:
            cpp, cuda = (OLD_DISPATCH.sub(r"\1.scalar_type()", each) for each in (cpp, cuda))
        built.append(ours(name, cpp, cuda, functions, **rest))
        return built[-1]

    cpp_extension.load_inline = load_inline


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main()
