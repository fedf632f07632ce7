"""Problems by name, which packages declare as entry points in `presage.problems`, and their seed kernels."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from presage.core.errors import PresageError, hint
from presage.kernels import header as headers
from presage.kernels.kernel import Kernel, from_source, read, split_spec
from presage.plugins.group import PROBLEMS
from presage.problems import external
from presage.problems.base import Problem
from presage.problems.external import ExternalProblem

_KERNEL_SUFFIXES = (".c", ".cu", ".py")
_PIECES = {".c": ".h", ".cu": ".cuh", ".py": ".pyh"}
"""How files end that hold a piece of kernels of each kind."""


@cache
def _declared() -> tuple[dict[str, Problem], list[str]]:
    """Every problem by name, and what went wrong with packages that declare some."""
    found: dict[str, Problem] = {}
    wrong: list[str] = []
    for name in PROBLEMS.names():
        try:
            made = PROBLEMS.load(name)()
            for problem in (made,) if isinstance(made, Problem) else made:
                if problem.name in found:
                    raise PresageError(f"the entry point '{name}' declares '{problem.name}', which is already there")
                found[problem.name] = problem
        except PresageError as error:
            wrong.append(str(error))
        except Exception as error:  # whatever another package does wrong, the others are there
            wrong.append(f"the entry point '{name}' in presage.problems failed: {type(error).__name__}: {error}")
    return found, wrong


def names() -> list[str]:
    """Every problem's name, in alphabetical order."""
    return sorted(_declared()[0])


def broken() -> list[str]:
    """What is wrong with installed packages whose problems are therefore missing."""
    return _declared()[1]


def get(name: str) -> Problem:
    """The problem of this name, or the one from elsewhere at this path; an unknown name gets the nearest ones in the
    error."""
    found, wrong = _declared()
    if name in found:
        return found[name]
    if name and Path(name).exists():
        return external.read(Path(name))
    is_path = name.endswith(".py") or "/" in name
    otherwise = "there is no such file or folder" if is_path else "'presage problems' lists them."
    said = "; ".join([hint(name, names(), otherwise), *wrong])
    raise PresageError(f"there is no problem '{name}'; {said}")


def seed_kernels(problem: Problem, language: str | None = None) -> list[Kernel]:
    """The kernels beside a problem and those it shares with its room, families not rendered; the naive ones first."""
    kernels = (problem.reference_kernel(),) if isinstance(problem, ExternalProblem) else _kernels(problem.name)
    return [kernel for kernel in kernels if language in (None, kernel.language)]


@cache
def _kernels(name: str) -> tuple[Kernel, ...]:
    """A problem's own file takes the place of a shared one of the same name, and so does a nearer one."""
    problem = get(name)
    files = {Path(kernel.name).name: kernel for kernel in (*_shared_kernels(problem), *_own_kernels(problem))}
    return tuple(files[file] for file in sorted(files, key=lambda file: (Path(file).stem != "naive", file)))


def _own_kernels(problem: Problem) -> Iterator[Kernel]:
    for file, text, places in _kernel_files(problem.kernel_folders[0]):
        whole = headers.fill(text, _given(problem, file.suffix), problem.name) if places else text
        yield from_source(whole, file.suffix, str(file))


def _shared_kernels(problem: Problem) -> Iterator[Kernel]:
    """The families that others share, all places of which the problem has something for; the nearest last."""
    for folder in problem.kernel_folders[:0:-1]:
        for file, text, places in _kernel_files(folder):
            given = _given(problem, file.suffix)
            if places <= given.keys():
                yield from_source(headers.fill(text, given, problem.name), file.suffix, str(file))


def _given(problem: Problem, suffix: str) -> dict[str, str]:
    """What the problem gives for the places of kernels, and the pieces of text beside them."""
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
    """The files that kernels of this kind share text from, by the name of their place, in alphabetical order."""
    return {file.stem: file.read_text().strip() for file in sorted(folder.glob(f"*{_PIECES[suffix]}"))}


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
