"""Builds and loads the host part of an extension, and hands its launches to a Launcher."""

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
    r"\bTORCH_LIBRARY|\bPyObject\b|\bm\.attr\b|\bhandle_scope\b"
    r"|\b(?:py|pybind11)::(?!(?:arg|none|gil_\w+|call_guard|module_?|return_value_policy|kw_only|literals)\b)"
    r"|\btorch::(?:nn|autograd|optim|data|jit|serialize|python)::"
)
"""What our few bindings and our choice of torch's headers do not have."""
_MAY_NEED_WHOLE = re.compile(
    r"is not a member of .(?:torch|at|c10|pybind11|py)\b|presage::Box<|class pybind11::module_."
)
_SAID_TWICE = re.compile(
    r"default argument given for|redefinition of (?![^\n]*presage_)|conflicting declaration|ambiguat"
)
_ERROR = re.compile(r"^[^\n]*\b(?:error|undefined reference)\b[^\n]*", re.MULTILINE)
_MOST_ERRORS = 5


class BuildError(Exception):
    """Host code does not compile; the message begins with the compiler's."""


@dataclass(frozen=True)
class Text:
    """One of an extension's sources, for the host."""

    name: str
    """As messages call it."""
    source: str
    unit: str = ""
    """What its launches are known by."""


@dataclass(frozen=True)
class Settings:
    """How sources are compiled."""

    folders: Sequence[str]
    macros: Sequence[str]
    has_gpu: bool


def build(name: str, texts: Sequence[Text], settings: Settings) -> tuple[Path, bool]:
    """The library, and whether it was compiled with all of pybind11. Raises BuildError.

    Sources are compiled together, since most of the time goes into what each of them needs; if they contradict each
    other, one by one.
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
    """The library of these groups of sources, each of them compiled as one."""
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
    """One source of all; what messages say is where the author wrote it."""
    lines = ["#include <torch/extension.h>", "#include <presage_launch.h>"] if whole else []
    lines.append(f"#define TORCH_EXTENSION_NAME {name}")
    for text in texts:
        lines += ["#undef PRESAGE_UNIT", f'#define PRESAGE_UNIT "{text.unit}"', f'#line 1 "{text.name}"', text.source]
    return "\n".join(lines) + "\n"


def _first_errors(said: str) -> str:
    found = _ERROR.findall(said)
    return "\n".join(found[:_MOST_ERRORS]) or said.strip()[-500:] or "the compiler ended early"


# -- what is loaded ---------------------------------------------------------------------------------------------------


def runtime() -> Any:
    """Our library, loaded so that what is linked to it finds it."""
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
    """The extension as a module. `before_call` is given what each of its functions is called with."""
    found = runtime()
    if whole:
        return _watched(foreign.load_module(str(library), name), before_call)
    number, functions = found.load(str(library))
    module = ModuleType(name)
    module.__file__ = str(library)
    for function, text in functions:
        setattr(module, function, _bound(found.call, number, function, text, before_call))
    return module


def _bound(call: Any, number: int, function: str, text: str, before_call: Callable[[Any], None]) -> Callable[..., Any]:
    def bound(*given: Any, **named: Any) -> Any:
        before_call((given, named))
        return call(number, function, given, named)

    bound.__name__ = bound.__qualname__ = function
    bound.__doc__ = text
    return bound


def _watched(module: ModuleType, before_call: Callable[[Any], None]) -> ModuleType:
    """The same module, whose functions tell before they are called."""

    def watched(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            before_call((given, named))
            return function(*given, **named)

        return call

    for name, value in list(vars(module).items()):
        if callable(value) and not isinstance(value, type) and not name.startswith("__"):
            setattr(module, name, watched(value))
    return module
