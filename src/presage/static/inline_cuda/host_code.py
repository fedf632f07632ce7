"""Builds and loads the host part of an extension. It is linked to the runtime that reports its launches."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import presage.static.inline_cuda.toolchain as toolchain
from presage.sandbox import foreign

_NEEDS_WHOLE = re.compile(
    r"\bPyObject\b|\bm\.attr\b|\bhandle_scope\b"
    r"|\b(?:py|pybind11)::(?!(?:arg|none|gil_\w+|call_guard|module_?|return_value_policy|kw_only|literals)\b)"
    r"|\btorch::(?:nn|autograd|optim|data|jit|serialize|python)::"
)
"""Code that needs more than our few bindings and our selection of torch's headers."""
_REGISTERS = re.compile(r"\bTORCH_LIBRARY")
"""Code that registers operators, which needs one more of torch's headers."""
_MAY_NEED_WHOLE = re.compile(
    r"is not a member of .(?:torch|at|c10|pybind11|py)\b|presage::Box<|class pybind11::module_."
)
_SAID_TWICE = re.compile(
    r"default argument given for|redefinition of (?![^\n]*presage_)|conflicting declaration|ambiguat"
)
_ERROR = re.compile(r"^[^\n]*\b(?:error|undefined reference)\b[^\n]*", re.MULTILINE)
_MOST_ERRORS = 5


class BuildError(Exception):
    """Host code does not compile. The message holds the compiler's first errors."""


@dataclass(frozen=True)
class Text:
    """The host part of one of an extension's sources."""

    name: str
    """The source's name in messages."""
    source: str
    unit: str = ""
    """The key of the source's device part in reports of launches."""


@dataclass(frozen=True)
class Settings:
    """How sources are compiled."""

    folders: Sequence[str]
    macros: Sequence[str]
    has_gpu: bool


def build(name: str, texts: Sequence[Text], settings: Settings) -> tuple[Path, bool]:
    """Build the library. Return its path, and whether it was compiled with all of pybind11. Raises BuildError.

    Sources are compiled together, since most of the time goes into the headers that each of them needs. If they
    contradict each other, they are compiled one by one.
    """
    folder = Path(tempfile.mkdtemp(prefix="extension"))
    whole = any(_NEEDS_WHOLE.search(text.source) for text in texts)
    try:
        return _compiled(folder, name, [texts], settings, whole), whole
    except BuildError as error:
        said = str(error)
    if len(texts) > 1 and _SAID_TWICE.search(said):
        return _compiled(folder, name, [[text] for text in texts], settings, whole), whole
    if not whole and _MAY_NEED_WHOLE.search(said):
        return _compiled(folder, name, [texts], settings, True), True
    raise BuildError(said)


def _compiled(folder: Path, name: str, groups: Sequence[Sequence[Text]], settings: Settings, whole: bool) -> Path:
    """Compile each group of sources as one file, and link them to a library."""
    sources, library = [], folder / f"{name}.so"
    for number, texts in enumerate(groups):
        sources.append(folder / f"host{number}.cpp")
        sources[-1].write_text(_together(name, texts, whole), encoding="utf-8")
    command = toolchain.host_command(sources, library, settings.folders, settings.macros, whole, settings.has_gpu)
    status, _, said = foreign.run_program(command)
    if status:
        raise BuildError(_first_errors(said))
    return library


def _together(name: str, texts: Sequence[Text], whole: bool) -> str:
    """Join sources into one. Messages of the compiler name the author's files and lines."""
    lines = ["#include <torch/extension.h>", "#include <presage_launch.h>"] if whole else []
    if any(_REGISTERS.search(text.source) for text in texts):
        lines.append(f'#include "{toolchain.torch().includes[0]}/torch/library.h"')
    lines.append(f"#define TORCH_EXTENSION_NAME {name}")
    for text in texts:
        lines += ["#undef PRESAGE_UNIT", f'#define PRESAGE_UNIT "{text.unit}"', f'#line 1 "{text.name}"', text.source]
    return "\n".join(lines) + "\n"


def _first_errors(said: str) -> str:
    found = _ERROR.findall(said)
    return "\n".join(found[:_MOST_ERRORS]) or said.strip()[-500:] or "the compiler ended early"


# -- loading ----------------------------------------------------------------------------------------------------------


def runtime() -> Any:
    """The runtime library, loaded so that extensions that are linked to it find its symbols."""
    if (found := sys.modules.get(toolchain.RUNTIME)) is not None:
        return found
    place = str(toolchain.kept() / f"{toolchain.RUNTIME}.so")
    flags = sys.getdlopenflags()
    sys.setdlopenflags(os.RTLD_NOW | os.RTLD_GLOBAL)
    try:
        loaded = foreign.load_module(place, toolchain.RUNTIME)
    finally:
        sys.setdlopenflags(flags)
    return loaded


def load(name: str, library: Path, whole: bool, before_call: Callable[[Any], None]) -> ModuleType:
    """Load an extension as a module. `before_call` is called with the arguments of each call of its functions."""
    found = runtime()
    if whole:
        return _watched(foreign.load_module(str(library), name), before_call)
    number, functions = found.load(str(library))
    module = ModuleType(name)
    module.__file__ = str(library)
    for function, text in functions:
        setattr(module, function, _bound(found.call, number, function, text, before_call))
    return module


def load_operators(library: Path) -> str:
    """Load a library that is no Python module, but registers operators with torch. Return its path, as torch does."""
    import torch

    torch.ops.load_library(str(library))
    return str(library)


def _bound(call: Any, number: int, function: str, text: str, before_call: Callable[[Any], None]) -> Callable[..., Any]:
    def bound(*given: Any, **named: Any) -> Any:
        before_call((given, named))
        return call(number, function, given, named)

    bound.__name__ = bound.__qualname__ = function
    bound.__doc__ = text
    return bound


def _watched(module: ModuleType, before_call: Callable[[Any], None]) -> ModuleType:
    """The same module, whose functions call `before_call` with their arguments first."""

    def watched(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            before_call((given, named))
            return function(*given, **named)

        return call

    for name, value in list(vars(module).items()):
        if callable(value) and not isinstance(value, type) and not name.startswith("__"):
            setattr(module, name, watched(value))
    return module
