"""Finds problems by name, which packages declare as entry points in `presage.problems`, and their seed kernels."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from presage.core.errors import PresageError, hint
from presage.kernels import header as headers
from presage.kernels.kernel import Kernel, from_source, read_family, read_without_header, split_spec
from presage.plugins.group import PROBLEMS, declared_twice
from presage.problems import external
from presage.problems.base import Problem
from presage.problems.external import ExternalProblem
from presage.problems.kernel_file import SUFFIXES, KernelProblem

_KERNEL_SUFFIXES = (".c", ".cu", ".py")
_PIECES = {".c": ".h", ".cu": ".cuh", ".py": ".pyh"}
"""The suffixes of files with text that kernels share, by the suffix of the kernels."""


@dataclass(frozen=True)
class _Declared:
    """The problems that installed packages declare, and error messages about those that cannot be used."""

    problems: dict[str, Problem]
    twice: dict[str, str]
    """The error message for each name that several packages declare."""
    broken: dict[str, str]
    """The error message of each broken entry point, by its name."""


@cache
def _declared() -> _Declared:
    made: dict[str, dict[str, Problem]] = {}
    broken: dict[str, str] = {}
    for point in PROBLEMS.names():
        try:
            for problem in _made(point):
                made.setdefault(problem.name, {})[point] = problem
        except PresageError as error:  # a broken package must not hide the others
            broken[point] = str(error)
    twice = {
        name: declared_twice("problem", name, map(PROBLEMS.package, by_point))
        for name, by_point in made.items()
        if len(by_point) > 1
    }
    problems = {name: next(iter(by_point.values())) for name, by_point in made.items() if name not in twice}
    return _Declared(problems, twice, broken)


def _made(point: str) -> list[Problem]:
    """Make the problems of an entry point: a Problem class, or a function that returns one or several of them."""
    make = PROBLEMS.load(point)
    with PROBLEMS.blamed(point, "cannot be made"):
        made = make()
        problems = [made] if isinstance(made, Problem) or not isinstance(made, Iterable) else list(made)
    for problem in problems:
        PROBLEMS.check_made(point, problem)
    return problems


def names() -> list[str]:
    """Every problem's name, in alphabetical order."""
    return sorted(_declared().problems)


def broken() -> dict[str, str]:
    """Error messages about missing problems of installed packages, by the name of the entry point or the problem."""
    declared = _declared()
    return declared.broken | declared.twice


def get(name: str) -> Problem:
    """The problem of this name, or the external problem at this path. Raises PresageError; for an unknown name, its
    message lists the nearest names."""
    declared = _declared()
    if name in declared.problems:
        return declared.problems[name]
    if name in declared.twice:
        raise PresageError(declared.twice[name])
    if os.path.exists(name):  # unlike Path.exists, not an error for a name that is too long
        return of_kernel_file(name) if is_kernel_file(name) else external.read(Path(name))
    is_path = name.endswith((".py", *SUFFIXES)) or "/" in name
    otherwise = "there is no such file or folder" if is_path else "'presage problems' lists them."
    said = "; ".join([hint(name, names(), otherwise), *declared.broken.values()])
    raise PresageError(f"there is no problem '{name}'; {said}")


def is_path(word: str) -> bool:
    """Whether a word given as a problem is the path of a file or folder that states one."""
    return os.path.isfile(word if Path(word).suffix in _KERNEL_SUFFIXES else os.path.join(word, "task.yml"))


def is_kernel_file(word: str) -> bool:
    """Whether a word given as a problem is the path of a bare kernel."""
    return word.endswith(SUFFIXES) and os.path.isfile(word)


def of_kernel_file(path: str) -> Problem:
    """The problem that a bare kernel's header names, or else the one that it states by declaring arrays."""
    kernel = read_family(path)
    if kernel.header.problem:
        return get(kernel.header.problem)
    if not kernel.header.outputs:
        raise PresageError(
            f"{path} names no problem and declares no output; add '// presage: problem NAME', or its arrays and sizes:"
            " '// presage: input x = float32[n]', '// presage: output y = float32[n]', '// presage: case n = 4096'"
        )
    return KernelProblem(kernel)


def seed_kernels(problem: Problem, language: str | None = None) -> list[Kernel]:
    """The kernels beside a problem and those shared in its room, the naive ones first. Families are not rendered."""
    if isinstance(problem, ExternalProblem):
        kernels: tuple[Kernel, ...] = (problem.reference_kernel(),)
    else:
        kernels = problem.families if isinstance(problem, KernelProblem) else _kernels(problem)
    return [kernel for kernel in kernels if language in (None, kernel.language)]


@cache
def _kernels(problem: Problem) -> tuple[Kernel, ...]:
    """The kernels of a problem. Its own file replaces a shared one of the same name, and a nearer shared file replaces
    a farther one."""
    files = {Path(kernel.name).name: kernel for kernel in (*_shared_kernels(problem), *_own_kernels(problem))}
    return tuple(files[file] for file in sorted(files, key=lambda file: (Path(file).stem != "naive", file)))


def _own_kernels(problem: Problem) -> Iterator[Kernel]:
    for file, text, places in _kernel_files(problem.kernel_folders[0]):
        whole = headers.fill(text, _given(problem, file.suffix), problem.name) if places else text
        yield from_source(whole, file.suffix, str(file))


def _shared_kernels(problem: Problem) -> Iterator[Kernel]:
    """The shared families for which the problem fills every placeholder; those of the nearest folder last."""
    for folder in problem.kernel_folders[:0:-1]:
        for file, text, places in _kernel_files(folder):
            given = _given(problem, file.suffix)
            if places <= given.keys():
                yield from_source(headers.fill(text, given, problem.name), file.suffix, str(file))


@cache
def _given(problem: Problem, suffix: str) -> Mapping[str, str]:
    """The text for each placeholder in kernels, from the problem itself and from text files in its kernel folders."""
    given = dict(problem.given(suffix))
    for folder in problem.kernel_folders:
        for name, text in _pieces(folder, suffix).items():
            if headers.places(text) <= given.keys():
                given.setdefault(name, headers.insert(text, given))
    return given


@cache
def _kernel_files(folder: Path) -> tuple[tuple[Path, str, frozenset[str]], ...]:
    files = sorted(file for file in folder.glob("*") if file.suffix in _KERNEL_SUFFIXES and file.stem != "__init__")
    return tuple((file, text := file.read_text(), headers.places(text)) for file in files)


@cache
def _pieces(folder: Path, suffix: str) -> dict[str, str]:
    """The text that kernels of this suffix share, by the name of its placeholder, in alphabetical order."""
    return {file.stem: file.read_text().strip() for file in sorted(folder.glob(f"*{_PIECES[suffix]}"))}


_ANCHORS = {"cpu": "naive.c", "gpu": "eager.py"}


def anchor(problem: Problem, kind: str) -> Kernel | None:
    """The kernel that speedups are relative to: the reference of a problem that a file states; else the naive kernel on
    a CPU, or on a GPU the code that a PyTorch user would write. None if there is none."""
    if reference := problem.reference_kernel():
        return reference
    return next((kernel for kernel in seed_kernels(problem) if Path(kernel.name).name == _ANCHORS[kind]), None)


def find_kernel(problem: Problem, spec: str) -> Kernel:
    """A kernel by path, or by the file name of one of the problem's own kernels (`naive.c`, `rows.c@BLOCK=4`)."""
    path, values = split_spec(spec)
    return find_family(problem, path).render(values)


def find_configurations(problem: Problem, spec: str) -> list[Kernel]:
    """Every configuration of a kernel with tunables, in the order of its header. `PATH@NAME=VALUE` selects those with
    these values."""
    path, fixed = split_spec(spec)
    family = find_family(problem, path)
    family.render(fixed)  # raises PresageError if the values are invalid
    return [family.render(values) for values in family.configurations(fixed)]


def find_family(problem: Problem, path: str) -> Kernel:
    """A kernel by path, or by the file name of one of the problem's own kernels. A family is not rendered."""
    if isinstance(problem, ExternalProblem):
        kernel = problem.candidate(read_family(_place(problem, path)))
    else:
        seeds = seed_kernels(problem)
        for kernel in seeds:
            if path == kernel.name or (path == Path(kernel.name).name and not os.path.exists(path)):
                return kernel
        if not os.path.exists(path):
            names = ", ".join(sorted(kernel.family for kernel in seeds))
            raise PresageError(f"there is no kernel file {path}; {problem.name} has of its own: {names}")
        kernel = read_family(path)
    if kernel.header.problem not in (None, problem.name):
        raise PresageError(f"{path} says it solves '{kernel.header.problem}', not '{problem.name}'")
    return kernel


def find_without_header(problem: Problem, spec: str) -> Kernel:
    """The kernel of a file whose header has an error."""
    path, _ = split_spec(spec)
    return read_without_header(_place(problem, path) if isinstance(problem, ExternalProblem) else path)


def _place(problem: ExternalProblem, path: str) -> str:
    """The path of a file, which may be relative to the problem's folder."""
    beside = not os.path.exists(path) and (problem.folder / path).is_file()
    return str(problem.folder / path) if beside else path
