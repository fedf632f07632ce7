"""Loads a kernel module by the community's conventions: GPU MODE's `custom_kernel(data)`, KernelBench's `ModelNew`."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any


def load_module(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location("candidate", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules["candidate"] = module
    spec.loader.exec_module(module)
    return module


def entry_point(module: ModuleType, init: Sequence[Any] = ()) -> Callable[[Any], Any]:
    """The function that takes a call's data: the inputs, then the problem's parameters."""
    function = getattr(module, "custom_kernel", None)
    if callable(function):
        return function  # type: ignore[no-any-return]
    model_class = getattr(module, "ModelNew", None)
    if callable(model_class):
        model = model_class(*init)
        if hasattr(model, "cuda"):
            model = model.cuda()
        return lambda data: model(*data)
    raise AttributeError("the module defines neither custom_kernel(data) nor ModelNew")
