"""External problems, read in place: a KernelBench file, a GPU MODE folder, or a user's file that defines a function
`reference` and its example `inputs`.

Their code is the user's own, but it never runs in this process. A device runs it in a child (see devices/examiner.py),
which describes the cases' inputs and outputs, makes inputs from a seed, and compares outputs with the right ones.
"""

from __future__ import annotations

import ast
import copy
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Protocol

from presage.core.errors import PresageError
from presage.kernels.kernel import Kernel, from_source
from presage.kernels.kernel import read as read_kernel
from presage.problems import task_file
from presage.problems.base import Array, Case, Cost, Problem, Tolerance
from presage.problems.sampler import Sampler
from presage.static.report import StaticReport
from presage.static.trace import NO_TENSOR, TensorSpec, Trace, tensors_in

CONVENTIONS = KERNELBENCH, GPU_MODE, ONE_FILE = "KernelBench", "GPU MODE", "one-file"
_DEFINES = {
    ONE_FILE: ("reference", "inputs"),
    KERNELBENCH: ("Model", "get_inputs", "get_init_inputs"),
    GPU_MODE: ("generate_input", "ref_kernel", "check_implementation"),
}
TOLERANCES = {"float64": 1e-4, "float32": 1e-4, "float16": 1e-2, "bfloat16": 1e-2}
"""KernelBench's tolerances by the output's dtype, both absolute and relative to the reference's value. A one-file
problem has the same ones unless it sets its own."""
THINNED = "thinned"
"""A style of inputs: those of the file, of which parts are scaled down."""
_MAX_BYTES = 4 << 20
_SEEDS = 2**31 - 1
"""Seeds are below this value, since references may use numpy's generator, whose seed must fit into 32 bits."""


@dataclass(frozen=True)
class Layout:
    """The data of one case: its tensors, and how they are nested among numbers, strings, lists and dictionaries."""

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    names: tuple[str, ...]
    """The position of each input in the data, as a Python expression."""
    data: Any
    """The structure from which `worker.tensors.join` builds the data."""
    passed_on: tuple[bool, ...] = ()
    """For each output, whether the reference returns an input, or a view of one."""


_UNCOMPARABLE = (
    "its reference returns {}; only tensors can be compared, so let it and its kernels return a tensor, or a tuple or"
    " list of tensors"
)


class Examiner(Protocol):
    """Makes a problem's inputs and finds wrong outputs, by running the problem's own code."""

    def make(self, case: Case, seeds: Sequence[int]) -> list[tuple[Any, ...]]:
        """Return the input tensors of one call per seed."""

    def difference(self, case: Case, inputs: Sequence[Any], outputs: Sequence[Any]) -> str | None:
        """Return why these outputs are wrong, or None if they are right."""

    def needed(self, case: Case) -> list[int]:
        """Return the numbers of the inputs that every kernel has to read as a whole."""

    def let_go(self) -> None:
        """Free memory that is kept for later calls."""


class ExternalProblem(Problem):
    """A problem whose reference was written for another harness. `described` returns a copy that can be measured."""

    any_order: ClassVar[bool] = True
    is_foreign = True
    inputs: tuple[Array, ...] = ()
    outputs: tuple[Array, ...] = ()

    def __init__(
        self, path: Path, convention: str, files: Mapping[str, str], summary: str, checks: Sequence[Case],
        timed: Sequence[Case], tolerance: float | None = None,
    ) -> None:  # fmt: skip
        """tolerance: for a one-file problem; it replaces the defaults for the outputs' dtypes."""
        super().__init__(path.stem)
        self.path, self.convention, self.files, self.summary = path, convention, dict(files), summary
        self.checks, self.timed = tuple(checks), {"cpu": tuple(timed), "gpu": tuple(timed)}
        self.layouts: Mapping[str, Layout] = {}
        self.seed = 0
        """The seed for the weights of the reference and of a candidate."""
        self.keeps_tolerance = False
        """Whether KernelBench's or the file's tolerance holds even for outputs so small that it exceeds them."""
        self._tolerance = tolerance
        self.for_gpu = False
        """Whether outputs that are computed elsewhere are judged as on a GPU, where the reference may use TF32."""
        self.notes: dict[str, str] = {}
        """Remarks on comparing the outputs of a case, by the case's name; set once outputs were compared."""
        self.thinned: set[str] = set()
        """The names of the cases for which an output that does not depend on the inputs would be right, unless parts of
        the inputs are scaled down; filled once outputs were compared."""
        self._moved: dict[str, int] = {}
        """The bytes that every kernel has to move, for cases for which that was asked."""
        self._examiner: Examiner | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave out `_examiner`: it refers to a child of this process."""
        return {**self.__dict__, "_examiner": None}

    # -- what is known before any of its code has run -----------------------------------------------------------------

    @cached_property
    def folder(self) -> Path:
        return self.path if self.path.is_dir() else self.path.parent

    @property
    def room(self) -> str:
        return self.convention

    @property
    def scalars(self) -> tuple[str, ...]:
        return ()

    @cached_property
    def cases(self) -> tuple[Case, ...]:
        """Every distinct case: the checked ones first, then the timed ones."""
        return tuple({case.name: case for case in (*self.checks, *self.timed["gpu"])}.values())

    def reference_kernel(self) -> Kernel:
        """The reference as a candidate module. Speedups are relative to it."""
        if self.convention == KERNELBENCH:
            source, name = f"{self.files['reference.py']}\nModelNew = Model\n", str(self.path)
        elif self.convention == ONE_FILE:
            source, name = f"{self.files['reference.py']}{_CALLED}", str(self.path)
        else:
            source, name = "from reference import ref_kernel as custom_kernel\n", str(self.path / "reference.py")
        return self.candidate(from_source(source, ".py", name))

    def candidate(self, kernel: Kernel) -> Kernel:
        """Return the module as one that takes tensors, even without importing torch. Raises PresageError for a bare
        kernel."""
        if kernel.is_bare:
            raise PresageError(f"{kernel.name}: kernels for a {self.convention} problem are Python modules (.py)")
        return replace(kernel, language="torch") if kernel.language == "numpy" else kernel

    def with_modules(self) -> Iterator[Kernel]:
        """Yield the reference, and then the modules in the folder of the same name beside the problem's file, or in
        `modules` in the problem's folder."""
        yield self.reference_kernel()
        place = self.path / "modules" if self.path.is_dir() else self.path.with_suffix("")
        yield from (self.candidate(read_kernel(file)) for file in sorted(place.glob("*.py")))

    def worker_settings(self, folder: str) -> dict[str, Any]:
        """Write the problem's files to a worker's folder. Return the settings from which the worker loads them."""
        for name, text in self.files.items():
            Path(folder, name).write_text(text)
        own = dict.fromkeys(TOLERANCES, self._tolerance) if self._tolerance else TOLERANCES
        return {
            "convention": self.convention,
            "folder": folder,
            "seed": self.seed,
            "tolerances": own,
            "keeps_tolerance": self.keeps_tolerance,
            "for_gpu": self.for_gpu,
        }

    # -- what is known once its code has run ---------------------------------------------------------------------------

    def informed(self, reports: Sequence[StaticReport]) -> ExternalProblem:
        """Return this problem with the shapes and dtypes of its tensors, read from traces of its reference at each
        timed case, which needs no device. Without a trace of every case, return the problem unchanged. Raises
        PresageError if the reference returns what is no tensor, since no kernel could be judged."""
        cases, traces = self.timed["gpu"], [report.trace for report in reports]
        lacks = next((trace.lacks for trace in traces if trace and (trace.lacks or "").startswith(NO_TENSOR)), None)
        if lacks:
            raise PresageError(f"{self.path}: {_UNCOMPARABLE.format(lacks.removeprefix(NO_TENSOR).strip(': '))}")
        layouts = {case.name: _layout(trace) for case, trace in zip(cases, traces, strict=False) if trace}
        return self.described(layouts, (), None) if len(layouts) == len(cases) else self

    def described(
        self, layouts: Mapping[str, Layout], written: Sequence[int], examiner: Examiner | None
    ) -> ExternalProblem:
        """Return this problem with these layouts, ready to be measured if there is an examiner. `written` holds the
        indices of the inputs that are only buffers for an output."""
        kinds = {(layout.names, len(layout.outputs)) for layout in layouts.values()}
        if len(kinds) != 1:
            raise PresageError(f"{self.path}: its cases have different numbers of tensors, which cannot be measured")
        ((names, outputs),) = kinds
        known = copy.copy(self)
        known.layouts, known._examiner, known.notes, known.thinned, known._moved = layouts, examiner, {}, set(), {}
        known.inputs = tuple(Array(name, "", "", i in written) for i, name in enumerate(names))
        known.outputs = tuple(Array(f"output {i}" if outputs > 1 else "output", "", "") for i in range(outputs))
        return known

    def layout(self, case: Case) -> Layout:
        """The data of a case, which is alike for inputs of any style."""
        return self.layouts[replace(case, values="uniform").name]

    def _tensor(self, array: Array, case: Case) -> TensorSpec:
        layout = self.layout(case)
        if array in self.inputs:
            return layout.inputs[self.inputs.index(array)]
        return layout.outputs[self.outputs.index(array)]

    def shape(self, array: Array, case: Case) -> tuple[int, ...]:
        return self._tensor(array, case).shape

    def dtype(self, array: Array, case: Case) -> str:
        return self._tensor(array, case).dtype

    def is_passed_on(self, array: Array, case: Case) -> bool:
        """Whether the reference returns an input, or a view of one, as this output. Then kernels may, too."""
        passed_on = self.layout(case).passed_on
        return bool(passed_on) and passed_on[self.outputs.index(array)]

    def may_overlap(self, array: Array, case: Case) -> bool:
        """Whether elements of this output may share memory, since those of the reference's do."""
        return self.layout(case).outputs[self.outputs.index(array)].overlaps

    def arguments(self, case: Case) -> dict[str, Any]:
        layout = self.layout(case)
        inputs = [tensor.layout | {"written": a.written} for tensor, a in zip(layout.inputs, self.inputs, strict=True)]
        overlapping = [self.may_overlap(array, case) for array in self.outputs]
        return {"inputs": inputs, "data": layout.data, "any_order": True, "overlapping": overlapping}

    def make_inputs(self, case: Case, sampler: Sampler) -> tuple[Any, ...]:
        return self.make_several(case, [sampler])[0]

    def make_several(self, case: Case, samplers: Sequence[Sampler]) -> list[tuple[Any, ...]]:
        """The inputs of one call per sampler. One request for all of them is faster than one request each."""
        return self._asked.make(case, [int(sampler.integers((), 0, _SEEDS, "int64")) for sampler in samplers])

    def difference(self, case: Case, inputs: Sequence[Any], outputs: Sequence[Any]) -> str | None:
        """Return why these outputs are wrong by the problem's own rules, or None if they are right."""
        return self._asked.difference(case, inputs, outputs)

    def let_go(self) -> None:
        """Free memory that the reference keeps. Called between measurements, as other processes may need the memory."""
        self._asked.let_go()

    def oracle(self, xp: ModuleType, case: Case, *inputs: Any) -> tuple[Any, ...]:
        raise NotImplementedError("the right outputs stay in the child that knows them; ask for the difference")

    @property
    def _asked(self) -> Examiner:
        assert self._examiner is not None, "only a device can run a problem from elsewhere"
        return self._examiner

    def tolerance(self, case: Case) -> Tolerance:
        if self.convention == GPU_MODE:
            return Tolerance(0.0, "the task's own check_implementation", 0.0)
        if self._tolerance:
            return Tolerance(
                self._tolerance, f"the file's own: {self._tolerance:g} absolute and relative", self._tolerance
            )
        least, most = min(TOLERANCES.values()), max(TOLERANCES.values())
        whose = "KernelBench's own" if self.convention == KERNELBENCH else "as KernelBench's"
        reason = f"{whose}: {least:g} absolute and relative, {most:g} in half precision"
        if not self.keeps_tolerance:
            reason += "; relative to the output's scale where zeros or a constant would pass"
        return Tolerance(least, reason, least)

    def bytes(self, case: Case) -> int:
        arrays = [array for array in self.inputs if not array.written]
        return sum(self.array_bytes(array, case) for array in (*arrays, *self.outputs))

    def cost(self, case: Case) -> Cost:
        """Only the outputs' bytes, which every module must write. A module need only read the inputs that the outputs
        depend on, such as some rows of a table, or the filled part of a cache."""
        written = [a for a in self.outputs if not self.is_passed_on(a, case) and not self.may_overlap(a, case)]
        return Cost(sum(self.array_bytes(array, case) for array in written), 0)

    def moved_bytes(self, case: Case) -> int:
        """The bytes of the outputs and of inputs of which every value matters, found out by asking the reference. If
        there is no such input, 0: a kernel may have its answer ready."""
        if case.name not in self._moved:
            specs, numbers = self.layout(case).inputs, self._asked.needed(case)
            read = sum(spec.bytes for number, spec in enumerate(specs) if number in numbers and not spec.overlaps)
            self._moved[case.name] = self.cost(case).bytes + read if read else 0
        return self._moved[case.name]

    def flops(self, case: Case) -> int:
        """0, since the operations are not known: the roofline is that of the bytes alone."""
        return 0

    def restyled(self, case: Case) -> tuple[Case, ...]:
        """No other styles, since the file defines how inputs look, unless all such inputs have about one answer."""
        return (replace(case, values=THINNED),) if case.name in self.thinned else ()

    def draw_case(self, rng: random.Random) -> Case:
        """Choose one of the file's cases. Only its seed is new."""
        return rng.choice(self.checks)


def _layout(trace: Trace) -> Layout:
    inputs = tuple(trace.tensors[number] for number in trace.inputs)
    outputs = tuple(trace.tensors[number] for number in tensors_in([trace.outputs]))
    return Layout(inputs, outputs, tuple(f"data[{place}]" for place in range(len(inputs))), None)


# -- reading ----------------------------------------------------------------------------------------------------------


def read(path: Path) -> ExternalProblem:
    """Read a KernelBench file, a one-file problem, or a GPU MODE folder."""
    return _read_folder(path) if path.is_dir() else _read_file(path)


def _read_file(path: Path) -> ExternalProblem:
    source = _text(path)
    tree = _parsed(source, path)
    if set(_DEFINES[ONE_FILE]) <= _defined(tree) and "Model" not in _defined(tree):
        return _one_file(path, source, tree)
    _refuse_missing(tree, path, KERNELBENCH)
    case = Case({})
    return ExternalProblem(path, KERNELBENCH, {"reference.py": source}, _said(tree, "Model"), [case], [case])


_CALLED = "\n\ndef custom_kernel(data):\n    return reference(*data)\n"


def _one_file(path: Path, source: str, tree: ast.Module) -> ExternalProblem:
    """Read a one-file problem. `cases` and `tolerance` must be literals in the file, so that no code need run."""
    listed, tolerance = _literal(tree, "cases", path), _literal(tree, "tolerance", path)
    is_listed = isinstance(listed, list | tuple) and listed and all(_are_arguments(case) for case in listed)
    if listed is not None and not is_listed:
        raise PresageError(f"{path}: 'cases' is no list of arguments for inputs; write cases = [{{\"n\": 1024}}]")
    if tolerance is not None and not (isinstance(tolerance, int | float) and 0 < tolerance < 1):
        raise PresageError(f"{path}: 'tolerance' is no number between 0 and 1; write tolerance = 1e-3")
    for arguments in listed or [{}]:
        _refuse_arguments(tree, arguments, path)
    cases = list({case.name: case for case in (Case(each) for each in listed or [{}])}.values())
    summary = _said(tree, "reference") or " ".join((ast.get_docstring(tree) or "").split("\n\n")[0].split())
    problem = ExternalProblem(path, ONE_FILE, {"reference.py": source}, summary, cases, cases, tolerance)
    problem.keeps_tolerance = tolerance is not None
    return problem


def _are_arguments(case: Any) -> bool:
    """Whether these are arguments by name that can be sent to another process."""
    return isinstance(case, dict) and all(type(name) is str and _is_plain(value) for name, value in case.items())


def _refuse_arguments(tree: ast.Module, given: Mapping[str, Any], path: Path) -> None:
    """Raise PresageError if the function `inputs` cannot be called with these arguments by name."""
    made = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "inputs"]
    if len(made) != 1 or made[0].decorator_list:
        return
    taken = made[0].args
    plain = [each.arg for each in (*taken.posonlyargs, *taken.args)]
    needed = plain[: len(plain) - len(taken.defaults)]
    needed += [each.arg for each, value in zip(taken.kwonlyargs, taken.kw_defaults, strict=True) if value is None]
    known = [*plain, *(each.arg for each in taken.kwonlyargs)]
    if missing := [name for name in needed if name not in given]:
        example = ", ".join(f'"{name}": 1024' for name in needed)
        raise PresageError(f"{path}: inputs needs {' and '.join(missing)}; write cases = [{{{example}}}]")
    if not taken.kwarg and (unknown := [name for name in given if name not in known]):
        raise PresageError(f"{path}: a case has '{unknown[0]}', which inputs({', '.join(known)}) does not take")


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return value is None or type(value) in (bool, int, float, str)


def _literal(tree: ast.Module, name: str, path: Path) -> Any:
    """The literal that a plain assignment at the top of a module gives this name; None without an assignment."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and [each.id for each in node.targets if isinstance(each, ast.Name)] == [name]:
            try:
                return ast.literal_eval(node.value)
            except (ValueError, TypeError, RecursionError, MemoryError) as error:
                raise PresageError(
                    f"{path}:{node.lineno}: '{name}' must be written out: numbers, texts, lists"
                ) from error
    return None


def _read_folder(folder: Path) -> ExternalProblem:
    path = folder / "task.yml"
    if not path.is_file():
        installed = (folder / "pyproject.toml").is_file()
        otherwise = (
            f"; if it is a package with a problem of its own, run 'pip install -e {folder}'" if installed else ""
        )
        raise PresageError(f"{folder} is no GPU MODE task: there is no task.yml in it{otherwise}")
    task = task_file.parse(_text(path), str(path))
    if task.get("lang", "py") != "py":
        raise PresageError(f"{path}: lang is '{task['lang']}'; only Python tasks ('py') can be measured")
    files = _task_files(folder, path, task)
    reference = folder / "reference.py"
    _refuse_missing(_parsed(files["reference.py"], reference), reference, GPU_MODE)
    timed = _cases(path, task, "benchmarks")
    summary = " ".join(str(task.get("description") or "").split("\n\n")[0].split())
    return ExternalProblem(folder, GPU_MODE, files, summary, _cases(path, task, "tests"), timed)


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise PresageError(f"cannot read {path}: {error.strerror}") from error
    if len(data) > _MAX_BYTES:
        raise PresageError(f"{path} has more than {_MAX_BYTES} bytes, the most that a problem's file may have")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise PresageError(f"{path} is not UTF-8 text (byte {error.start}); save it as UTF-8") from error


def _parsed(source: str, path: Path) -> ast.Module:
    try:
        tree = ast.parse(source)
        _defined(tree)
        return tree
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise PresageError(f"{path} is no Python: {str(error) or 'it nests too deeply'}") from error


def _defined(tree: ast.Module) -> set[str]:
    return {name for node in tree.body for name in _names(node)}


def _refuse_missing(tree: ast.Module, path: Path, convention: str) -> None:
    defined = _defined(tree)
    missing = [name for name in _DEFINES[convention] if name not in defined]
    if missing and (own := _own_problem(tree)):
        folder = next((each for each in path.absolute().parents if (each / "pyproject.toml").is_file()), path.parent)
        raise PresageError(
            f"{path} declares the problem {own}, which is not run from a path: install its package"
            f" ('pip install -e {folder}') and name the problem instead"
        )
    if missing and "*" not in defined:
        own = "; a problem of your own defines reference(…) and inputs()" if convention == KERNELBENCH else ""
        raise PresageError(f"{path} is no {convention} problem: it defines no {' and no '.join(missing)}{own}")


def _own_problem(tree: ast.Module) -> str:
    """The name of a class that derives from Presage's own Problem, found without running the code; or empty."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and any(ast.unparse(base).endswith("Problem") for base in node.bases):
            return node.name
    return ""


def _names(node: ast.AST) -> list[str]:
    """The names that a statement defines at the top of a module, also inside an `if` or a `try`."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
        return [node.name]
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name for alias in node.names]
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return [node.id]
    return [name for child in ast.iter_child_nodes(node) for name in _names(child)]


def _said(tree: ast.Module, name: str) -> str:
    """The first paragraph of the docstring of the class or function of this name; empty if there is none."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return " ".join((ast.get_docstring(node) or "").split("\n\n")[0].split())
    return ""


def _task_files(folder: Path, path: Path, task: Mapping[str, Any]) -> dict[str, str]:
    """The files that are beside a submission when it runs, by name: all in `files` but the submission and GPU MODE's
    own harness."""
    listed = task.get("files")
    if not isinstance(listed, list) or not all(isinstance(entry, dict) for entry in listed):
        raise PresageError(f"{path}: 'files' is no list of mappings with a name and a source")
    config = task.get("config")
    harness = config.get("main") if isinstance(config, dict) else "eval.py"
    files = {}
    for entry in listed:
        name, source = entry.get("name"), entry.get("source")
        if not isinstance(name, str) or not isinstance(source, str) or Path(name).name != name:
            raise PresageError(f"{path}: {entry} under 'files' is no plain file name with a source")
        if source != "@SUBMISSION@" and name != harness:
            files[name] = _text(_inside(folder, source, path))
    if "reference.py" not in files:
        raise PresageError(f"{path}: 'files' lists no reference.py")
    return files


_SHARED = "../utils.py"
"""The file that GPU MODE's tasks share, which is beside their folders."""


def _inside(folder: Path, source: str, path: Path) -> Path:
    """The resolved path of a source. Raises PresageError if it is outside the task's folder once links are followed,
    unless it is the shared file."""
    file, home = (folder / source).resolve(), folder.resolve()
    if file.is_relative_to(home) or (source == _SHARED and file == home.parent / Path(source).name):
        return file
    raise PresageError(
        f"{path}: the source '{source}' lies outside of the task's folder; put a copy into it (only {_SHARED}, which"
        " tasks share, may lie beside it)"
    )


def _cases(path: Path, task: Mapping[str, Any], what: str) -> list[Case]:
    """The listed cases; each one holds the arguments of a call of `generate_input`. Seeds are left out, since every
    call gets its own."""
    listed = task.get(what)
    if not isinstance(listed, list) or not listed or not all(isinstance(entry, dict) for entry in listed):
        example = '- {"size": 128, "seed": 1}'
        raise PresageError(f"{path}: '{what}' is no list of arguments; write lines like '{example}'")
    cases: dict[str, Case] = {}
    for entry in listed:
        case = Case({name: value for name, value in entry.items() if name != "seed"})
        cases.setdefault(case.name, case)
    return list(cases.values())
