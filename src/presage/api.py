"""The verbs of the public API. Each takes names, paths or objects.

A problem is a name of the catalogue, the path of a KernelBench or GPU MODE problem, or a Problem. A kernel is the path
of a file, the name of one of the problem's own (`naive.cu`, `rows.c@BLOCK=4`), or a Kernel. Every mistake of the caller
raises PresageError, whose message says what to do. Import these from `presage`.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import overload

from presage.core.errors import PresageError
from presage.devices import recorded
from presage.devices import registry as devices
from presage.devices.base import Device, Effort, Measurement, Progress, speedup
from presage.devices.recording import Recording
from presage.evaluations import evaluation
from presage.evaluations.evaluation import Evaluation
from presage.forecasters import registry as forecasters
from presage.forecasters.base import Forecaster, Prediction
from presage.forecasters.from_names import ask
from presage.kernels.kernel import Kernel
from presage.problems import registry as problems
from presage.problems import static
from presage.problems.base import Problem
from presage.report import frozen
from presage.searches import run as runs
from presage.searches.configuration import RUNS
from presage.searches.run import Run
from presage.static import hardware
from presage.static.report import StaticReport

Path = str | os.PathLike[str]
TARGET = "h200"


def load_problem(name: Path) -> Problem:
    """The problem of this name, or the KernelBench or GPU MODE problem at this path.

    Raises PresageError if there is none."""
    return problems.get(os.fspath(name))


def load_kernel(problem: Path | Problem, kernel: Path | Kernel) -> Kernel:
    """A kernel of a problem: a file, or one of the problem's own by name. `PATH@NAME=VALUE,…` sets tunables.

    Raises PresageError if the file cannot be read or its header is wrong."""
    known = _problem(problem)
    return kernel if isinstance(kernel, Kernel) else problems.find_kernel(known, os.fspath(kernel))


def load_family(problem: Path | Problem, kernel: Path) -> list[Kernel]:
    """Every configuration of a kernel with tunables, in the order of its header. `PATH@NAME=VALUE,…` keeps those with
    these values. A kernel without tunables has one configuration.

        presage.forecast("softmax", presage.load_family("softmax", "block_row.cu"))

    Raises PresageError if the file cannot be read, its header is wrong, or no configuration has these values."""
    return problems.find_configurations(_problem(problem), os.fspath(kernel))


def load_device(name: str) -> Device:
    """The device of this name: `cpu`, `cuda`, `recorded:h200`, `recorded:FILE.parquet`, or a plugin's. Close it after
    use; what it keeps warm between measurements makes the next one quicker.

    Raises PresageError if it cannot be had here."""
    return devices.get(name)


def load_recording(name: Path | None = None) -> Recording:
    """An installed recording by name, or the `.parquet` file at this path; by default the first that is installed.

    Raises PresageError if there is none, or the file is damaged."""
    if name is None:
        if not recorded.packaged():
            raise PresageError("no recording is installed; name a .parquet file")
        name = recorded.packaged()[0]
    return recorded.find(os.fspath(name))


@overload
def forecast(  # type: ignore[overload-overlap]  # a str is a sequence, too, but the first fits
    problem: Path | Problem,
    kernels: Path | Kernel,
    *,
    target: str = ...,
    forecaster: str | Forecaster = ...,
    anchor: Path | Kernel | None = ...,
    rehearse: bool = ...,
) -> Prediction: ...
@overload
def forecast(
    problem: Path | Problem,
    kernels: Sequence[Path | Kernel],
    *,
    target: str = ...,
    forecaster: str | Forecaster = ...,
    anchor: Path | Kernel | None = ...,
    rehearse: bool = ...,
) -> list[Prediction]: ...
def forecast(
    problem: Path | Problem,
    kernels: Path | Kernel | Sequence[Path | Kernel],
    *,
    target: str = TARGET,
    forecaster: str | Forecaster = "learned",
    anchor: Path | Kernel | None = None,
    rehearse: bool = False,
) -> Prediction | list[Prediction]:
    """Forecast the speedup of one kernel or of several over the anchor, without running any of them.

    target: a GPU (`h200`, `rtx4090`), `recorded:NAME`, or `cpu`.
    forecaster: a name, with settings if it has some, or a Forecaster.
    anchor: what the speedup is relative to; by default the problem's seed kernel.
    rehearse: run CUDA and Triton kernels on the CPU first, on small inputs: whether they compute what they should says
    much about whether they will fail. It takes a second or two for each.

    Returns one Prediction for one kernel, and a list of them, in the same order, for several. `prediction.forecast` is
    a distribution over log2 of the speedup, or None where there is none to give; `why_broken` says why a kernel cannot
    work; `notes` say what else to know. Several kernels are compiled together, which takes less time than one by one.

    Raises PresageError for unknown names, files that cannot be read, and a forecaster that cannot be had."""
    asked = ask(
        _named(problem),
        [_spec(each) for each in _several(kernels)],
        None if anchor is None else _spec(anchor),
        target,
        rehearse=rehearse,
    )
    said = asked.forecast(forecaster)
    return said[0] if _is_one(kernels) else said


@overload
def inspect(  # type: ignore[overload-overlap]  # a str is a sequence, too, but the first fits
    problem: Path | Problem, kernels: Path | Kernel, *, target: str = ..., timeout: float = ...
) -> list[StaticReport]: ...
@overload
def inspect(
    problem: Path | Problem, kernels: Sequence[Path | Kernel], *, target: str = ..., timeout: float = ...
) -> list[list[StaticReport]]: ...
def inspect(
    problem: Path | Problem,
    kernels: Path | Kernel | Sequence[Path | Kernel],
    *,
    target: str = TARGET,
    timeout: float = 60.0,
) -> list[StaticReport] | list[list[StaticReport]]:
    """Compile one kernel or several for a GPU, and report what that tells. Nothing runs on a GPU.

    target: a GPU (`h200`, `rtx4090`) or an architecture (`sm_90`).
    timeout: seconds for each compilation.

    Returns one report for each case that is timed on a GPU, in their order; for several kernels, a list of these. A
    kernel that does not compile has the status `compile_error` and the compiler's message.

    Raises PresageError for unknown names, files that cannot be read, and a compiler that is not installed."""
    known = _problem(problem)
    found = [load_kernel(known, each) for each in _several(kernels)]
    reports = static.reports(known, found, known.timed["gpu"], hardware.find(target), timeout)
    return reports[0] if _is_one(kernels) else reports


@overload
def measure(  # type: ignore[overload-overlap]  # a str is a sequence, too, but the first fits
    problem: Path | Problem,
    kernels: Path | Kernel,
    *,
    device: str | Device = ...,
    anchor: Path | Kernel | None = ...,
    effort: Effort | None = ...,
    progress: Progress | None = ...,
) -> Measurement: ...
@overload
def measure(
    problem: Path | Problem,
    kernels: Sequence[Path | Kernel],
    *,
    device: str | Device = ...,
    anchor: Path | Kernel | None = ...,
    effort: Effort | None = ...,
    progress: Progress | None = ...,
) -> list[Measurement]: ...
def measure(
    problem: Path | Problem,
    kernels: Path | Kernel | Sequence[Path | Kernel],
    *,
    device: str | Device = "cpu",
    anchor: Path | Kernel | None = None,
    effort: Effort | None = None,
    progress: Progress | None = None,
) -> Measurement | list[Measurement]:
    """Check and time one kernel or several, side by side with the anchor, each confined in a process of its own.

    device: a name, or a Device, which stays open.
    anchor: what speedups are relative to; by default the problem's own, and "none" for no anchor.
    effort: how precise the medians must be, and when to give up.
    progress: called with what is being done and the share that is done.

    Returns one Measurement for one kernel, and a list of them, in the same order, for several. A kernel that is wrong,
    crashes, hangs or cheats has that status and a reason; that is no exception.

    Raises PresageError for unknown names, files that cannot be read, and a device that cannot be had."""
    with ExitStack() as stack:
        if isinstance(device, str):
            device = devices.get(device)
            stack.callback(device.close)
        _, measured = measure_beside_anchor(problem, _several(kernels), device, anchor, effort, progress)
    return measured[0] if _is_one(kernels) else measured


def measure_beside_anchor(
    problem: Path | Problem,
    kernels: Sequence[Path | Kernel],
    device: Device,
    anchor: Path | Kernel | None = None,
    effort: Effort | None = None,
    progress: Progress | None = None,
) -> tuple[Measurement | None, list[Measurement]]:
    """As `measure`, for who wants to see the anchor's own measurement, too: it comes first, or None without anchor."""
    known = problem if isinstance(problem, Problem) else device.problem(os.fspath(problem))

    def find(kernel: Path | Kernel) -> Kernel:
        return kernel if isinstance(kernel, Kernel) else device.kernel(known, os.fspath(kernel))

    wanted = [find(each) for each in kernels]
    first = None if anchor == "none" else find(anchor) if anchor else device.anchor(known)
    every = [*([first] if first else []), *wanted]
    measured = device.measure(known, every, effort or Effort(), progress or _silent)
    if not first:
        return None, measured
    reference, *others = measured
    return reference, [replace(each, speedup=speedup(reference, each)) for each in others]


def evaluate(
    forecaster: str | Forecaster,
    *,
    recording: Path | Recording | None = None,
    problem: str | None = None,
    split: str = "test_op",
    suites: Sequence[str] = evaluation.NAMES,
    neighbours: int = 0,
    seed: int = 0,
    say: Callable[[str], None] = lambda line: None,
) -> Evaluation:
    """Ask a forecaster about every kernel of a recording's split, and score what it says.

    recording: a Recording, the name of an installed one, or a path; by default the first that is installed.
    problem: score only the kernels of this operation, whatever its split.
    split: of the recording's operations, or "all".
    suites: which scores to compute.
    neighbours: how many measured kernels of each operation to show to the forecaster, as a search would.
    say: called with a line about what is being done.

    Returns an Evaluation: `numbers` holds every score with its interval, by name.

    Raises PresageError for unknown names, and a recording without the split."""
    if not isinstance(recording, Recording):
        recording = load_recording(recording)
    name = forecaster if isinstance(forecaster, str) else None
    with ExitStack() as stack:
        if isinstance(forecaster, str):
            forecaster = forecasters.get(forecaster, recording)
            stack.callback(forecaster.close)
        return evaluation.evaluate(
            forecaster, recording, split, suites, seed, name=name, problem=problem, neighbours=neighbours, say=say
        )


def list_runs(folder: Path = RUNS) -> list[Run]:
    """The runs in a folder, in alphabetical order, finished or not; by default where searches put them.

    Raises PresageError if one of them is damaged, or has only just been made."""
    return [Run(each) for each in runs.folders(pathlib.Path(folder))]


def write_report(run: Path | Run) -> pathlib.Path:
    """Write the report of a run into its folder, and say where: one HTML file that needs nothing else.

    Raises PresageError if there is no run, or nothing of it was measured."""
    return frozen.write(run.folder if isinstance(run, Run) else pathlib.Path(run))


def _problem(problem: Path | Problem) -> Problem:
    return problem if isinstance(problem, Problem) else load_problem(problem)


def _named(problem: Path | Problem) -> str | Problem:
    return problem if isinstance(problem, Problem) else os.fspath(problem)


def _spec(kernel: Path | Kernel) -> str | Kernel:
    return kernel if isinstance(kernel, Kernel) else os.fspath(kernel)


def _is_one(kernels: Path | Kernel | Sequence[Path | Kernel]) -> bool:
    return isinstance(kernels, str | os.PathLike | Kernel)


def _several(kernels: Path | Kernel | Sequence[Path | Kernel]) -> list[Path | Kernel]:
    if isinstance(kernels, str | os.PathLike | Kernel):
        return [kernels]
    several = list(kernels)
    if not several:
        raise PresageError("name one kernel or more")
    return several


def _silent(doing: str, share: float) -> None:
    pass
