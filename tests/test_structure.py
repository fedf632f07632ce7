"""The house rule: a folder imports only from folders above it, and the worker from hardly anything."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from every import of_every
from imports import imports

import presage

SOURCE = Path(__file__).resolve().parents[1] / "src"
FOLDERS = [
    "core",
    "sandbox",
    "plugins",
    "kernels",
    "static",
    "problems",
    "devices",
    "llm",
    "forecasters",
    "policies",
    "proposers",
    "store",
    "searches",
    "corpus",
    "train",
    "evaluations",
    "authoring",
    "report",
    "api",
    "neighbours",
    "cli",
    "mcp",
    "__main__",
]
KERNEL_LIBRARIES = {"torch", "triton", "cuda"}
"""What a kernel's language may need; imported only when a kernel of that language is there."""
OWN_COMPILERS = ("presage.static", "presage.static.nvrtc")
"""What we wrote ourselves of that; it needs nothing else of ours."""
RECORDING = ("presage.devices.worker", "presage.static.trace", "presage.static.tracing")
"""What a call is written down and repeated with."""
INSIDE = ("sandbox", "sandbox.launch", "sandbox.foreign", "sandbox.confinement", "sandbox.rules", "sandbox.syscalls")
"""The part of the sandbox that runs in the child."""
SANDBOX = (*(f"presage.{part}" for part in INSIDE), "presage.sandbox.launch.Gate")
MODULES = sorted([*SOURCE.glob("presage/**/*.py"), *SOURCE.glob("presage_catalogue/**/*.py")])


def dotted(file: Path) -> str:
    parts = file.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


@cache
def imported(file: Path) -> tuple[str, ...]:
    return tuple(imports(parsed(file)))


@cache
def imports_at_once(file: Path) -> frozenset[str]:
    """The modules that importing this file imports, whether or not anything in it is called."""
    found: set[str] = set()
    waiting: list[ast.AST] = list(parsed(file).body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.update(imports(node))
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            is_typing = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            waiting += [] if is_typing else ast.iter_child_nodes(node)
    return frozenset(found)


def loaded_with(module: str) -> set[str]:
    """The packages that are loaded once this module of ours is, ours and others'."""
    files = {dotted(file): file for file in OURS}
    seen: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += imports_at_once(files[name]) if name in files else []
    return {name.split(".")[0] for name in seen}


def is_foreign(file: Path) -> bool:
    """Kernels, which lie in folders of a room or are shared by all rooms, are data, not part of the house."""
    package, *folders = file.parent.relative_to(SOURCE).parts
    return package == "presage_catalogue" and (folders == ["families"] or len(folders) == 2)


OURS = [file for file in MODULES if not is_foreign(file)]


@of_every(OURS, dotted)
def test_a_folder_imports_only_from_folders_above_it(file: Path) -> None:
    parts = dotted(file).split(".")
    if parts[0] == "presage_catalogue":
        return
    if len(parts) == 1:  # the public API, which imports nothing before it is asked for
        assert not [name for name in imports_at_once(file) if name.startswith("presage")]
        return
    assert parts[1] in FOLDERS, f"{parts[1]} has no place in the list"
    above = FOLDERS[: FOLDERS.index(parts[1]) + 1]
    for name in imported(file):
        package, *rest = name.split(".")
        if package == "presage" and rest and rest[0] in FOLDERS:
            assert rest[0] in above, f"{parts[1]} must not import {name}"


CATALOGUE_NEEDS = ("presage.core", "presage.kernels", "presage.problems", "presage_catalogue")


@of_every(OURS, dotted)
def test_the_catalogue_is_a_plugin_that_the_engine_does_not_know(file: Path) -> None:
    names = [name for name in imported(file) if name.startswith("presage")]
    if dotted(file).startswith("presage_catalogue"):
        assert [name for name in names if not name.startswith(CATALOGUE_NEEDS)] == []
    else:
        assert [name for name in names if name.startswith("presage_catalogue")] == []
        assert "presage_catalogue" not in file.read_text()


def test_no_module_imports_itself_by_way_of_others() -> None:
    """There is no circle among the modules that importing each one imports."""
    files = {dotted(file): file for file in OURS}
    needs = {name: {each for each in imports_at_once(file) if each in files} for name, file in files.items()}
    while leaves := {name for name, needed in needs.items() if not needed}:
        needs = {name: needed - leaves for name, needed in needs.items() if name not in leaves}
    assert needs == {}


WORKER = [file for file in OURS if dotted(file).startswith("presage.devices.worker")]


@pytest.mark.parametrize("file", WORKER, ids=dotted)
def test_the_worker_needs_only_python_numpy_and_the_kernel_s_language(file: Path) -> None:
    for name in imported(file):
        package = name.split(".")[0]
        if package == "presage":
            ours = (
                *OWN_COMPILERS,
                "presage.devices",
                *(f"presage.{part}" for part in INSIDE),
                "presage.sandbox.launch.Gate",
            )
            assert name in ours or any(name == part or name.startswith(f"{part}.") for part in RECORDING), name
        else:
            assert package in sys.stdlib_module_names | KERNEL_LIBRARIES | {"numpy"}, name


@pytest.mark.parametrize(
    "module", ["presage.devices.worker.main", *(dotted(file) for file in OURS if file.parent.name == "cli")]
)
def test_heavy_libraries_are_loaded_only_when_needed(module: str) -> None:
    loaded = loaded_with(module)
    assert "presage" in loaded
    assert not loaded & (KERNEL_LIBRARIES | {"matplotlib", "transformers", "trl"})


@pytest.mark.parametrize("part", INSIDE[1:])
def test_what_confines_needs_only_python(part: str) -> None:
    for name in imports(ast.parse((SOURCE / "presage" / f"{part.replace('.', '/')}.py").read_text())):
        package = name.split(".")[0]
        assert package in sys.stdlib_module_names or name.startswith("presage.sandbox"), name


STARTS = ("subprocess", "multiprocessing", "pty", "popen2", "concurrent.futures.ProcessPoolExecutor", "runpy", "code")
"""Modules that start processes or run text."""
STARTING = {"fork", "forkpty", "system", "popen", "posix_spawn", "posix_spawnp"}
RUNNING = {"exec", "eval", "compile", "__import__", "execfile"}
"""Functions of Python's that run text."""
LOADING = {"exec_module", "load_module", "module_from_spec", "spec_from_file_location", "run_path", "load_source"}
OWN_TEXT = {
    "presage_catalogue.attention.heads": "a formula of the catalogue's own",
    "presage.devices.worker.main": "imports numpy or torch by name, inside the child",
}
"""Where text is run that is our own."""


def starts_or_runs(tree: ast.AST) -> Iterator[str]:
    """Everything under this node that starts a process or runs text."""
    yield from (name for name in imports(tree) if any(name == one or name.startswith(f"{one}.") for one in STARTS))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os":
            if node.attr in STARTING or node.attr.startswith(("exec", "spawn")):
                yield f"os.{node.attr}"
        elif isinstance(node, ast.Attribute) and node.attr in LOADING and "foreign" not in ast.unparse(node):
            yield node.attr
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in RUNNING:
            yield node.func.id
        elif isinstance(node, ast.ImportFrom) and node.module == "os":
            yield from (alias.name for alias in node.names if alias.name in STARTING)


@of_every([file for file in OURS if file.parent.name != "sandbox"], dotted)
def test_only_the_sandbox_starts_processes_and_runs_foreign_text(file: Path) -> None:
    found = list(starts_or_runs(parsed(file)))
    assert not found or dotted(file) in OWN_TEXT, found


def test_in_the_sandbox_each_way_to_start_a_process_is_known() -> None:
    """One starts children from nothing, one the zygotes, one forks from them, one turns into a program, one loads
    foreign Python."""
    places = {
        file.stem: sorted(set(starts_or_runs(parsed(file)))) for file in (SOURCE / "presage" / "sandbox").glob("*.py")
    }
    assert {name: found for name, found in places.items() if found} == {
        "processes": ["subprocess"],
        "zygote": ["subprocess"],
        "forking": ["os.fork"],
        "launch": ["os.execve"],
        "foreign": ["exec_module", "module_from_spec", "spec_from_file_location", "subprocess"],
    }


def test_help_needs_not_even_numpy() -> None:
    assert "numpy" not in loaded_with("presage.cli.main")


def test_the_core_knows_nothing_of_kernels() -> None:
    for file in SOURCE.glob("presage/core/*.py"):
        words = {name.split(".")[0] for name in imported(file)}
        assert words <= sys.stdlib_module_names | {"numpy", "presage"}, file


def test_every_module_says_what_it_is_for() -> None:
    silent = [str(file) for file in OURS if not ast.get_docstring(parsed(file))]
    assert silent == []


def test_what_has_examples_needs_no_extra() -> None:
    """Who has installed no extra can run the tests: their examples are collected by importing modules."""
    options = tomllib.loads((SOURCE.parent / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    folders = tuple(str(SOURCE.parent / path) for path in options["testpaths"] if path.startswith("src/"))
    files = [file for file in MODULES if str(file).startswith(folders) and file.parent.name not in ("tracing", "web")]
    code = (
        "import importlib, sys\n"
        "sys.modules.update(dict.fromkeys(('torch', 'triton', 'cuda', 'openai', 'xllamacpp')))\n"
        "for name in sys.argv[1:]: importlib.import_module(name)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *map(dotted, files)],
        capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(SOURCE)},
    )  # fmt: skip
    assert len(files) > 20
    assert done.returncode == 0, done.stderr


GUI = sorted(SOURCE.glob("presage_gui/**/*.py"))
GUI_NEEDS = ("presage.core", "presage.llm", "presage.plugins", "presage.policies", "presage.report", "presage.store")
"""What the second application may use of the engine besides its public names."""


@of_every(GUI, dotted)
def test_the_critic_of_agents_is_an_application_that_the_engine_does_not_know(file: Path) -> None:
    tree = parsed(file)
    public = {"presage", *(f"presage.{name}" for name in presage.__all__), "presage.__version__"}
    used = [name for name in imported(file) if name.split(".")[0] == "presage"]
    assert [name for name in used if name not in public and not name.startswith(GUI_NEEDS)] == []
    assert ast.get_docstring(tree), "every module says what it is for"


def test_the_engine_knows_nothing_of_screens() -> None:
    assert [file for file in OURS if "presage_gui" in file.read_text()] == []


@pytest.mark.parametrize("module", [dotted(file) for file in GUI if file.parent.name == "cli"])
def test_what_a_screen_needs_is_loaded_only_when_needed(module: str) -> None:
    files = {dotted(file): file for file in [*OURS, *GUI]}
    seen: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += imports_at_once(files[name]) if name in files else []
    assert not {name.split(".")[0] for name in seen} & {"PIL", "playwright", "mss", "miniwob", "cv2", "rapidocr"}


@cache
def public_homes() -> set[str]:
    return {f"{getattr(presage, name).__module__}.{name}" for name in presage.__all__}


OUTSIDE = sorted(file for folder in ("benchmarks", "tests") for file in (SOURCE.parent / folder).rglob("*.py"))


@of_every(OUTSIDE, lambda file: str(file.relative_to(SOURCE.parent)))
def test_benchmarks_and_tests_take_public_names_from_the_public_api(file: Path) -> None:
    """What `presage.__all__` lists is imported from `presage`, never from the module that defines it."""
    assert sorted(public_homes() & set(imported(file))) == []
