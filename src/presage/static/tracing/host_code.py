"""A module's host code: finds the function to call, and makes its arguments as tensors without values."""

from __future__ import annotations

import inspect
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch.utils._pytree import tree_map

from presage.sandbox import foreign

FILE = "kernel.py"
"""The name of a module's file, by which errors in the module are told from others."""


def load(source: str) -> ModuleType:
    path = Path(tempfile.mkdtemp(), FILE)
    path.write_text(source, encoding="utf-8")
    foreign.provide_types()
    return foreign.load_module(str(path), "kernel_module")


def entry(module: ModuleType, reference: InputMaker | None) -> Callable[[Any], Any]:
    """The function that takes a call's data. For a KernelBench problem it calls a model."""
    wants_model = reference is not None and reference.is_model
    if hasattr(module, "custom_kernel") and not wants_model:
        return module.custom_kernel  # type: ignore[no-any-return]
    if wants_model and not hasattr(module, "ModelNew"):
        raise AttributeError("the module defines no ModelNew")
    if not hasattr(module, "ModelNew"):
        raise AttributeError("the module defines neither custom_kernel(data) nor ModelNew")
    initial = reference.initial if reference and wants_model else getattr(module, "get_init_inputs", tuple)
    model = foreign.construct(module.ModelNew, tuple(initial()))
    model = model.to("cuda") if hasattr(model, "to") else model
    return lambda data: model(*data)


def data_of(case: Mapping[str, Any]) -> tuple[Any, ...]:
    """The data of a call for a catalogue problem: the inputs, then the problem's parameters."""
    inputs = [torch.empty(shape, dtype=getattr(torch, dtype), device="cuda") for shape, dtype in case["inputs"]]
    return (*inputs, *case["parameters"])


class ReferenceFailedError(Exception):
    """The problem's reference failed, which is not the kernel's fault."""


class InputMaker:
    """The reference of an external problem, which makes inputs without values here."""

    def __init__(self, files: Mapping[str, str]) -> None:
        folder = tempfile.mkdtemp()
        for name, text in files.items():
            Path(folder, name).write_text(text, encoding="utf-8")
        sys.path.insert(0, folder)
        self._module = self._ask(lambda: foreign.load_module(str(Path(folder, "reference.py")), "reference"))

    @property
    def is_model(self) -> bool:
        """Whether the reference is a KernelBench model."""
        return hasattr(self._module, "get_init_inputs") and not hasattr(self._module, "generate_input")

    def initial(self) -> tuple[Any, ...]:
        """The constructor arguments of a KernelBench model."""
        return self._ask(lambda: tuple(self._module.get_init_inputs()))  # type: ignore[no-any-return]

    def data(self, arguments: Mapping[str, Any]) -> Any:
        """The data of one call, with its tensors on the GPU."""
        made = self._ask(lambda: self._generate(arguments))
        return tree_map(lambda part: part.cuda() if isinstance(part, torch.Tensor) else part, made)

    def _generate(self, arguments: Mapping[str, Any]) -> Any:
        if self.is_model:
            return tuple(self._module.get_inputs())
        if hasattr(self._module, "inputs") and not hasattr(self._module, "generate_input"):
            made = self._module.inputs(**arguments)
            return tuple(made) if isinstance(made, list | tuple) else (made,)
        generate = self._module.generate_input
        return generate(**arguments, **({"seed": 1} if "seed" in inspect.signature(generate).parameters else {}))

    def _ask(self, work: Callable[[], Any]) -> Any:
        try:
            return work()
        except BaseException as error:
            raise ReferenceFailedError(
                f"the problem's reference failed here, where tensors have no values: {type(error).__name__}: {error}"
            ) from error
