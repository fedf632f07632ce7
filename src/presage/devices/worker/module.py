"""Loads a kernel module by the community's conventions: GPU MODE's `custom_kernel(data)`, KernelBench's `ModelNew`."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from presage.sandbox import foreign


def load_reference(problem: dict[str, Any]) -> ModuleType:
    """Load the problem's own module. Its folder also has the files that the module and candidates import."""
    if problem["folder"] not in sys.path:
        sys.path.insert(0, problem["folder"])
    return foreign.load_module(os.path.join(problem["folder"], "reference.py"), "reference")


def load_candidate(command: dict[str, Any], device: str = "cpu") -> Callable[[Any], Any]:
    """Load the candidate and return the function that takes a call's data. KernelBench's model gets the same weights as
    its reference."""
    problem = command.get("problem")
    if problem is None:
        foreign.provide_types()
        return entry_point(_loaded(command), device)
    reference = load_reference(problem)
    foreign.provide_types()  # unless the problem has its own
    if problem["convention"] != "KernelBench":
        return entry_point(_loaded(command), device)
    init = initial_inputs(reference, problem["seed"], device)
    module = _loaded(command)
    set_seed(problem["seed"])
    return _model(foreign.construct(module.ModelNew, init), device)


def _loaded(command: dict[str, Any]) -> ModuleType:
    return foreign.load_module(command["path"], "candidate")


def entry_point(module: ModuleType, device: str) -> Callable[[Any], Any]:
    """The function that takes a call's data: the inputs, then the problem's parameters."""
    function = getattr(module, "custom_kernel", None)
    if callable(function):
        return function  # type: ignore[no-any-return]
    model_class = getattr(module, "ModelNew", None)
    if callable(model_class):
        return _model(model_class(), device)
    raise AttributeError("the module defines neither custom_kernel(data) nor ModelNew")


def _model(model: Any, device: str) -> Callable[[Any], Any]:
    if hasattr(model, "to"):
        model = model.to(device)
    return lambda data: model(*data)


def initial_inputs(reference: ModuleType, seed: int, device: str) -> list[Any]:
    """The arguments from which a KernelBench model is constructed."""
    set_seed(seed)
    return list(to_device(tuple(reference.get_init_inputs()), device))


def as_data(made: Any) -> tuple[Any, ...]:
    """The result of a one-file problem's `inputs`, which is one tensor or several, as the arguments of its
    reference."""
    return tuple(made) if isinstance(made, list | tuple) else (made,)


def to_device(values: tuple[Any, ...], device: str) -> tuple[Any, ...]:
    return tuple(value.to(device) if hasattr(value, "to") else value for value in values)


def set_seed(seed: int) -> None:
    """Seed every random generator that a reference may use."""
    import numpy
    import torch

    random.seed(seed)
    numpy.random.seed(seed % 2**32)
    torch.manual_seed(seed)
