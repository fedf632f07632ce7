"""The functions of the public API. They accept names, paths or objects.

A problem is given as a name from the catalogue, as the path of a KernelBench or GPU MODE problem, or as a Problem. A
kernel is given as the path of a file, as the name of one of the problem's own kernels (`naive.cu`, `rows.c@BLOCK=4`),
or as a Kernel. Invalid arguments raise PresageError, whose message says what to do. Import these functions from
`presage`.
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
    """Return the problem with this name, or the KernelBench or GPU MODE problem at this path.

    Raises PresageError if there is no such problem."""
    return problems.get(os.fspath(name))


def load_kernel(problem: Path | Problem, kernel: Path | Kernel) -> Kernel:
    """Return a kernel of a problem: the one in a file, or one of the problem's own kernels by name. The form
    `PATH@NAME=VALUE,…` sets tunables.

    Raises PresageError if the file cannot be read or its header is wrong."""
    known = _problem(problem)
    return kernel if isinstance(kernel, Kernel) else problems.find_kernel(known, os.fspath(kernel))


def load_family(problem: Path | Problem, kernel: Path) -> list[Kernel]:
    """Return every configuration of a kernel with tunables, in the order of its header. The form `PATH@NAME=VALUE,…`
    returns only the configurations with these values. A kernel without tunables has one configuration.

        presage.forecast("softmax", presage.load_family("softmax", "block_row.cu"))

    Raises PresageError if the file cannot be read, its header is wrong, or no configuration has these values."""
    return problems.find_configurations(_problem(problem), os.fspath(kernel))


def load_device(name: str) -> Device:
    """Return the device with this name: `cpu`, `cuda`, `recorded:h200`, `recorded:FILE.parquet`, or a plugin's name.

    Close the device after use. Reuse it for several measurements where possible: it keeps state between measurements
    that makes the next one quicker.

    Raises PresageError if the device is unknown or not available on this machine."""
    return devices.get(name)


def load_recording(name: Path | None = None) -> Recording:
    """Return an installed recording by name, or the recording in the `.parquet` file at this path. The default is the
    first installed recording.

    Raises PresageError if there is no such recording, or if the file is damaged."""
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
    target: str | None = ...,
    forecaster: str | Forecaster = ...,
    anchor: Path | Kernel | None = ...,
    rehearse: bool = ...,
) -> Prediction: ...
@overload
def forecast(
    problem: Path | Problem,
    kernels: Sequence[Path | Kernel],
    *,
    target: str | None = ...,
    forecaster: str | Forecaster = ...,
    anchor: Path | Kernel | None = ...,
    rehearse: bool = ...,
) -> list[Prediction]: ...
def forecast(
    problem: Path | Problem,
    kernels: Path | Kernel | Sequence[Path | Kernel],
    *,
    target: str | None = None,
    forecaster: str | Forecaster = "learned",
    anchor: Path | Kernel | None = None,
    rehearse: bool = False,
) -> Prediction | list[Prediction]:
    """Forecast the speedup of one or several kernels over the anchor, without running them on the target.

    target: a GPU (`h200`, `rtx4090`), `recorded:NAME`, or `cpu`; by default `cpu` for C and NumPy kernels, else `h200`.
    forecaster: a name, optionally with settings, or a Forecaster.
    anchor: the kernel that speedups are relative to; by default the problem's seed kernel.
    rehearse: first run CUDA and Triton kernels on the CPU, on small inputs. A wrong result there is strong evidence
    that the kernel will fail. This takes a second or two per kernel.

    Returns one Prediction for one kernel, or a list of Predictions in the order of `kernels`. `prediction.forecast` is
    a distribution over log2 of the speedup, or None if the forecaster has none. `why_broken` says why a kernel cannot
    work. `notes` hold remarks for the user. Several kernels in one call are compiled together, which is faster than
    one call per kernel.

    Raises PresageError for unknown names, unreadable files, and a forecaster that is not available."""
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
    """Compile one or several kernels for a GPU and return their static reports. Nothing runs on a GPU.

    target: a GPU (`h200`, `rtx4090`) or an architecture (`sm_90`).
    timeout: the limit for each compilation, in seconds.

    Returns a list with one StaticReport per case that is timed on a GPU, in the order of the cases. For several
    kernels, returns one such list per kernel. The report of a kernel that does not compile has the status
    `compile_error` and the compiler's message.

    Raises PresageError for unknown names, unreadable files, and a compiler that is not installed."""
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
    """Check and time one or several kernels side by side with the anchor. Each kernel is confined in its own process.

    device: a name, or a Device. A Device that is passed in stays open.
    anchor: the kernel that speedups are relative to; by default the problem's own anchor. "none" measures without one.
    effort: the required precision of the medians, and the time limits.
    progress: called with a description of the current work and the share of the work that is done.

    Returns one Measurement for one kernel, or a list of Measurements in the order of `kernels`. A kernel that is wrong,
    crashes, hangs or cheats does not raise: its Measurement has the corresponding status and a reason.

    Raises PresageError for unknown names, unreadable files, and a device that is not available."""
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
    """As `measure`, but return the anchor's measurement, or None without an anchor, and the list of the kernels'."""
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
    """Ask a forecaster about every kernel of a recording's split, and score its forecasts.

    forecaster: a name, optionally with settings, or a Forecaster. A Forecaster that is passed in stays open.
    recording: a Recording, the name of an installed one, or a path; by default the first installed recording.
    problem: score only the kernels of this operation, whatever its split.
    split: the split of the recording's operations to score, or "all".
    suites: the groups of scores to compute.
    neighbours: the number of measured kernels of each operation that the forecaster is shown, as in a search.
    say: called with a line of text when a stage begins.

    Returns an Evaluation. Its `numbers` hold every score with its interval, by name.

    Raises PresageError for unknown names, and for a recording without the split."""
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
    """Return the runs in a folder, finished or not, in alphabetical order. The default is the folder in which searches
    create their runs.

    Raises PresageError if a run is damaged, or if a run was created but has not begun."""
    return [Run(each) for each in runs.folders(pathlib.Path(folder))]


def write_report(run: Path | Run) -> pathlib.Path:
    """Write the report of a run into its folder as one self-contained HTML file, and return the path of this file.

    Raises PresageError if the folder holds no run, or if the run has no measurements yet."""
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
