"""Finds problems and their seed kernels in the catalogue's folders."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from presage.core.errors import PresageError, hint
from presage.kernels import header as headers
from presage.kernels.kernel import Kernel, from_source, read, split_spec
from presage.problems import external
from presage.problems.base import Operation, Problem
from presage.problems.external import ExternalProblem

_ROOT = Path(__file__).parent
_KERNEL_SUFFIXES = (".c", ".cu", ".py")


@cache
def _folders() -> dict[str, Path]:
    return {file.parent.name: file.parent for file in sorted(_ROOT.glob("*/*/problem.py"))}


@cache
def _operations() -> dict[str, Operation]:
    """The problems that are rows of a table in their room: every module there that has `OPERATIONS`."""
    found: dict[str, Operation] = {}
    for file in sorted(_ROOT.glob("*/*.py")):
        module = importlib.import_module(f"presage.problems.{file.parent.name}.{file.stem}")
        for operation in getattr(module, "OPERATIONS", ()):
            if operation.name in found or operation.name in _folders():
                raise PresageError(f"{file} defines '{operation.name}', which is already there")
            found[operation.name] = operation
    return found


def names() -> list[str]:
    """Every problem's name, in alphabetical order."""
    return sorted({*_folders(), *_operations()})


def get(name: str) -> Problem:
    """The problem of this name, or the one from elsewhere at this path; an unknown name gets the nearest ones in the
    error."""
    if name in _folders():
        return _of_the_catalogue(name)
    if name in _operations():
        return _operations()[name]
    if name and Path(name).exists():
        return external.read(Path(name))
    is_path = name.endswith(".py") or "/" in name
    otherwise = "there is no such file or folder" if is_path else "'presage problems' lists them."
    raise PresageError(f"there is no problem '{name}'; {hint(name, names(), otherwise)}")


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
    """The kernels beside a problem and those it shares with its room, families not rendered; the naive ones first."""
    kernels = (problem.reference_kernel(),) if isinstance(problem, ExternalProblem) else _kernels(problem.name)
    return [kernel for kernel in kernels if language in (None, kernel.language)]


@cache
def _kernels(name: str) -> tuple[Kernel, ...]:
    """A problem's own file takes the place of a shared one of the same name."""
    problem = get(name)
    files = {Path(kernel.name).name: kernel for kernel in (*_shared_kernels(problem), *_own_kernels(problem))}
    return tuple(files[file] for file in sorted(files, key=lambda file: (Path(file).stem != "naive", file)))


def _own_kernels(problem: Problem) -> Iterator[Kernel]:
    if isinstance(problem, Operation):
        return
    for file in problem.folder.iterdir():
        if file.suffix in _KERNEL_SUFFIXES and file.name != "problem.py":
            yield from_source(file.read_text(), file.suffix, str(file))


def _shared_kernels(problem: Problem) -> Iterator[Kernel]:
    """The families of the problem's room, all places of which it has something for."""
    for file, text, places in _shared_families(problem.room):
        given = problem.given(file.suffix)
        if places <= given.keys():
            yield from_source(headers.fill(text, given, problem.name), file.suffix, str(file))


@cache
def _shared_families(room: str) -> tuple[tuple[Path, str, frozenset[str]], ...]:
    files = sorted(file for file in (_ROOT / room / "families").glob("*") if file.suffix in _KERNEL_SUFFIXES)
    return tuple((file, text := file.read_text(), headers.places(text)) for file in files)


_ANCHORS = {"cpu": "naive.c", "gpu": "eager.py"}


def anchor(problem: Problem, kind: str) -> Kernel | None:
    """What speedups are relative to: the naive kernel on a CPU, what a PyTorch user would write on a GPU, and the
    reference of a problem from elsewhere."""
    if isinstance(problem, ExternalProblem):
        return problem.reference_kernel()
    return next((kernel for kernel in seed_kernels(problem) if Path(kernel.name).name == _ANCHORS[kind]), None)


def find_kernel(problem: Problem, spec: str) -> Kernel:
    """A kernel by path, or by the file name of one of the problem's own (`naive.c`, `rows.c@BLOCK=4`)."""
    path, values = split_spec(spec)
    if isinstance(problem, ExternalProblem):
        beside = not Path(path).exists() and (problem.folder / path).is_file()
        kernel = problem.candidate(read(problem.folder / spec if beside else spec))
    else:
        seeds = seed_kernels(problem)
        for kernel in seeds:
            if path == kernel.name or (path == Path(kernel.name).name and not Path(path).exists()):
                return kernel.render(values)
        if not Path(path).exists():
            names = ", ".join(sorted(kernel.family for kernel in seeds))
            raise PresageError(f"there is no kernel file {path}; {problem.name} has of its own: {names}")
        kernel = read(spec)
    if kernel.header.problem not in (None, problem.name):
        raise PresageError(f"{path} says it solves '{kernel.header.problem}', not '{problem.name}'")
    return kernel
