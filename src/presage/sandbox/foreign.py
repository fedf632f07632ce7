"""Runs foreign Python: loads a module, provides what GPU MODE's modules import even if their task's folder is missing,
and runs the compiler on what a module builds.

Works only inside a confined child; elsewhere it raises RuntimeError.
"""

from __future__ import annotations

import importlib.util
import inspect
import subprocess
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from presage.sandbox import launch


class _Task(ModuleType):
    """A module in which every name is the type Any."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Any


def load_module(path: str, name: str) -> ModuleType:
    """Load the module in this file, so that others can import it by this name."""
    _must_be_confined()
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def construct(kind: Any, arguments: Sequence[Any]) -> Any:
    """A model from the result of `get_init_inputs`: its arguments, or as in KernelBook a list of these and a dictionary
    of those that have names."""
    _must_be_confined()
    if [type(each) for each in arguments] == [list, dict]:
        plain, named = arguments
        if _fit(kind, plain, named) and (named or not _fit(kind, arguments, {})):
            return kind(*plain, **named)
    return kind(*arguments)


def _fit(kind: Any, plain: Sequence[Any], named: Mapping[str, Any]) -> bool:
    """Whether a class can be called with these arguments."""
    try:
        inspect.signature(kind).bind(*plain, **named)
    except (TypeError, ValueError):
        return False
    return True


def run_program(command: Sequence[str], text: str = "") -> tuple[int, str, str]:
    """Run a compiler on foreign text. Returns its exit status, its stdout and its stderr."""
    _must_be_confined()
    done = subprocess.run(command, input=text.encode(), capture_output=True, check=False)
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")


def _must_be_confined() -> None:
    if not launch.is_confined():
        raise RuntimeError("foreign code runs only in a confined child")


def provide_types() -> None:
    """Make `from task import input_t, output_t` work. These types are used in annotations only."""
    if "task" not in sys.modules and importlib.util.find_spec("task") is None:
        sys.modules["task"] = _Task("task")
