"""The list of calls of torch's operators to measure: the calls that modules make, traced without a GPU.

The modules are those listed by packages (entry points in the group `presage.operators`), KernelBench problems in a
folder, as written and in variants (other batch sizes, data types and memory layouts), and modules written for problems.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from presage.core.errors import PresageError
from presage.corpus import collect
from presage.devices.recording import read_parquet
from presage.kernels.kernel import from_source
from presage.plugins.group import OPERATORS
from presage.problems import static
from presage.problems.external import ExternalProblem
from presage.static import operator_calls, reporting
from presage.static.hardware import Hardware
from presage.static.launch_request import Job
from presage.static.trace import Trace, TraceError

FILE = "calls.parquet"
MOST_BYTES = 4 << 30
"""The most bytes that a call may read and write. Larger calls take long and show nothing new."""
_AT_ONCE = 16
_SECONDS = 120.0
"""The limit of a module, also of its host code's processor time: a list makes thousands of calls."""
_DEFINES = ("get_inputs", "get_init_inputs", "Model")

_CHANGED = """
_as_written, _Written = get_inputs, Model
import torch as _torch

def get_inputs():
    found = list(_as_written())
    first = next((x for x in found if isinstance(x, _torch.Tensor) and x.dim()), None)
    return [_changed(x, first) if isinstance(x, _torch.Tensor) else x for x in found]

def _changed(x, first):
    {change}

def ModelNew(*arguments):
    return _Written(*arguments){convert}
"""
_BATCH = "return {} if first is not None and x.dim() and len(x) == len(first) > 1 else x"
_TYPE = "return x.to(_torch.{0}) if x.is_floating_point() else x"
VARIANTS = {
    "": ("return x", ""),
    "half the batch": (_BATCH.format("x[: len(x) // 2]"), ""),
    "twice the batch": (_BATCH.format("_torch.cat([x, x])"), ""),
    "float16": (_TYPE.format("float16"), ".to(_torch.float16)"),
    "bfloat16": (_TYPE.format("bfloat16"), ".to(_torch.bfloat16)"),
    "float16, channels last": (
        "x = x.to(_torch.float16) if x.is_floating_point() else x\n"
        "    return x.to(memory_format=_torch.channels_last) if x.dim() == 4 else x",
        ".to(_torch.float16).to(memory_format=_torch.channels_last)",
    ),
    "TF32": ("return x", ""),
}
"""The variants of a module, by name: how the inputs are changed, and how the model is converted."""
_ALLOW_TF32 = "import torch\ntorch.backends.cuda.matmul.allow_tf32 = True\n"


@dataclass
class Listed:
    """A call, and the names of the modules that make it."""

    call: Trace
    origins: dict[str, None]


def listed(
    folders: Sequence[Path],
    target: Hardware,
    say: Callable[[str], None],
    modules: Sequence[Path] = (),
    known: Collection[str] = (),
) -> list[Listed]:
    """Return every distinct call, in a fixed pseudo-random order, so that any first part of the list is a fair sample.

    folders: folders of KernelBench problems, traced in every variant. modules: folders of external problems, whose
    modules are traced. The modules listed by packages are always included. known: the hashes of calls to leave out.
    target: the GPU to trace for. say: called with progress and with modules that cannot be traced."""
    found: dict[str, Listed] = {}
    traced = 0
    sources = [*_of_packages(target), *(each for folder in folders for each in _of_folder(folder, target))]
    sources += [each for folder in modules for each in _of_modules(folder, target)]
    for first in range(0, len(sources), _AT_ONCE):
        some = sources[first : first + _AT_ONCE]
        made = reporting.reports([job for _, job in some], _SECONDS, host_seconds=_SECONDS)
        for (origin, _), report in zip(some, made, strict=True):
            if report.trace is None:
                said = (report.error or report.status).splitlines()[0]
                say(f"{origin} cannot be traced: {said}")
                continue
            traced += 1
            for call in operator_calls.of_trace(report.trace):
                if call.steps[0].bytes <= MOST_BYTES and call.hash not in known:
                    found.setdefault(call.hash, Listed(call, {})).origins[origin] = None
        done = min(len(sources), first + _AT_ONCE)
        lacking = f", {done - traced} cannot be traced" if traced < done else ""
        say(f"{done} of {len(sources)} modules{lacking or ' traced'}: {len(found)} calls")
    return [found[name] for name in sorted(found)]


def _of_packages(target: Hardware) -> Iterator[tuple[str, Job]]:
    for name in OPERATORS.names():
        for file in sorted(Path(OPERATORS.load(name)).glob("[!_]*.py")):
            yield f"{name}/{file.stem}", Job(from_source(file.read_text("utf-8"), ".py", file.name), {}, (), target)


def _of_modules(folder: Path, target: Hardware) -> Iterator[tuple[str, Job]]:
    """The modules of each external problem, at the problem's first case. Their calls are in the problem's split."""
    for each in collect.modules(folder, ("torch", "triton")):
        if isinstance(each.problem, ExternalProblem):
            origin = f"{each.problem.name} ({each.kernel.hash[:12]})"
            yield origin, static.job(each.problem, each.kernel, each.problem.timed["gpu"][0], target)


def _of_folder(folder: Path, target: Hardware) -> Iterator[tuple[str, Job]]:
    """Each KernelBench problem in every applicable variant."""
    files = sorted(folder.glob("**/*.py"))
    if not files:
        raise PresageError(f"{folder} holds no KernelBench problems: there is no .py file in it")
    for file in files:
        text = file.read_text("utf-8", errors="replace")
        if missing := [name for name in _DEFINES if name not in text]:
            raise PresageError(f"{file} is no KernelBench problem: it does not define {missing[0]}")
        for variant, (change, convert) in VARIANTS.items():
            if ("channels" in variant) > ("Conv2d" in text) or (variant == "TF32" and "Conv" in text):
                continue
            source = text + _CHANGED.format(change=change, convert=convert)
            source = _ALLOW_TF32 + source if variant == "TF32" else source
            kernel = from_source(source, ".py", file.name)
            yield (
                f"{file.stem}{variant and f' ({variant})'}",
                Job(kernel, {}, (), target, files={"reference.py": source}),
            )


# -- the file ---------------------------------------------------------------------------------------------------------


def write(path: Path, found: Sequence[Listed]) -> None:
    """Write the list to a file atomically. Raises PresageError if that fails."""
    import pyarrow
    import pyarrow.parquet

    rows = [{**operator_calls.to_row(each.call), "origins": list(each.origins)} for each in found]
    save(path, pyarrow.Table.from_pylist(rows, schema=pyarrow.schema(columns())))


def columns() -> list[tuple[str, Any]]:
    """The names and types of the columns that describe a call."""
    import pyarrow as pa

    texts = ("hash", "operator", "tensors", "arguments", "flags", "precision")
    return [
        *((name, pa.string()) for name in texts),
        *(("inputs", pa.int32()), ("bytes", pa.int64()), ("flops", pa.float64()), ("origins", pa.list_(pa.string()))),
    ]


def save(path: Path, table: Any) -> None:
    import pyarrow.parquet

    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        pyarrow.parquet.write_table(table, part, compression="zstd", compression_level=19)
        part.replace(path)
    except OSError as error:
        raise PresageError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        part.unlink(missing_ok=True)


def read(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a list, in their order. Raises PresageError if there is no such file."""
    if not path.is_file():
        raise PresageError(f"there is no list of calls {path}")
    rows: list[dict[str, Any]] = read_parquet(path, [name for name, _ in columns()]).to_pylist()
    return rows


def call_of(row: dict[str, Any]) -> Trace:
    """Return the call of a row. Raises TraceError if the call does not have the row's hash."""
    call = operator_calls.from_row(row)
    if call.hash != row["hash"]:
        raise TraceError("the call is not the one that its hash names")
    return call
