"""Finds problems and their seed kernels in the catalogue's folders."""

from __future__ import annotations

import difflib
import importlib
from functools import cache
from pathlib import Path

from presage.core.errors import PresageError
from presage.kernels.kernel import Kernel, from_source, read, split_spec
from presage.problems import external
from presage.problems.base import Problem
from presage.problems.external import ExternalProblem

_ROOT = Path(__file__).parent
_KERNEL_SUFFIXES = (".c", ".cu", ".py")


@cache
def _folders() -> dict[str, Path]:
    return {file.parent.name: file.parent for file in sorted(_ROOT.glob("*/*/problem.py"))}


def names() -> list[str]:
    """Every problem's name, in alphabetical order."""
    return sorted(_folders())


def get(name: str) -> Problem:
    """The problem of this name, or the one from elsewhere at this path; an unknown name gets the nearest ones in the
    error."""
    if name in _folders():
        return _of_the_catalogue(name)
    if name and Path(name).exists():
        return external.read(Path(name))
    near = difflib.get_close_matches(name, names(), n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else "'presage problems' lists them."
    if not near and (name.endswith(".py") or "/" in name):
        hint = "there is no such file or folder"
    raise PresageError(f"there is no problem '{name}'; {hint}")


@cache
def _of_the_catalogue(name: str) -> Problem:
    folder = _folders()[name]
    module = importlib.import_module(f"presage.problems.{folder.parent.name}.{folder.name}.problem")
    for thing in vars(module).values():
        if isinstance(thing, type) and issubclass(thing, Problem) and thing.__module__ == module.__name__:
            instance: Problem = thing()
            return instance
    raise PresageError(f"{folder}/problem.py defines no Problem")


def seed_kernels(problem: Problem, language: str | None = None) -> list[Kernel]:
    """The kernels beside a problem, families not rendered; the naive one first."""
    if isinstance(problem, ExternalProblem):
        return [problem.reference_kernel()]
    files = [file for file in problem.folder.iterdir() if file.suffix in _KERNEL_SUFFIXES and file.name != "problem.py"]
    files.sort(key=lambda file: (file.stem != "naive", file.name))
    kernels = [from_source(file.read_text(), file.suffix, str(file)) for file in files]
    return [kernel for kernel in kernels if language in (None, kernel.language)]


_ANCHORS = {"cpu": "naive.c", "gpu": "eager.py"}


def anchor(problem: Problem, kind: str) -> Kernel | None:
    """What speedups are relative to: the naive kernel on a CPU, what a PyTorch user would write on a GPU, and the
    reference of a problem from elsewhere."""
    if isinstance(problem, ExternalProblem):
        return problem.reference_kernel()
    file = problem.folder / _ANCHORS[kind]
    return read(file) if file.is_file() else None


def find_kernel(problem: Problem, spec: str) -> Kernel:
    """A kernel by path, or by the file name of one of the problem's own (`naive.c`, `rows.c@BLOCK=4`)."""
    path, _ = split_spec(spec)
    if not Path(path).exists() and (problem.folder / path).is_file() and Path(path).name != "problem.py":
        spec = f"{problem.folder}/{spec}"
    kernel = read(spec)
    if kernel.header.problem not in (None, problem.name):
        raise PresageError(f"{path} says it solves '{kernel.header.problem}', not '{problem.name}'")
    return problem.candidate(kernel) if isinstance(problem, ExternalProblem) else kernel
