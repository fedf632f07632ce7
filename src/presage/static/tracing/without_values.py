"""Computes small tensors on the host that are made of plain numbers, even where other tensors have no values: a model's
constructor may ask for them (`[x.item() for x in torch.linspace(0, 0.1, 12)]`)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, unset_fake_temporarily
from torch.utils._pytree import tree_leaves, tree_map

_MOST = 4096
"""Most elements of a small tensor."""
_MADE_OF_NUMBERS = {"aten::arange", "aten::linspace", "aten::logspace", "aten::scalar_tensor"}
_MADE_OF_SIZES = {"aten::zeros", "aten::ones", "aten::full", "aten::eye"}


def known(func: Any, args: Any, kwargs: Any) -> Any:
    """The operator's result, if it works only on small host tensors with values; else NotImplemented."""
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    device = kwargs.get("device")
    if device is not None and torch.device(device).type != "cpu":
        return NotImplemented
    if not (_are_small(tensors) if tensors else _is_small(func._schema.name, args)):
        return NotImplemented
    with unset_fake_temporarily():
        return func(*args, **kwargs)


def forget(values: Any) -> Any:
    """Replace tensors that have values by tensors that have only shapes."""
    mode = torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE)
    if mode is None:
        return values
    return tree_map(lambda x: mode.from_tensor(x) if _has_values(x) else x, values)


def _are_small(tensors: Iterable[torch.Tensor]) -> bool:
    return all(_has_values(x) and x.device.type == "cpu" and x.numel() <= _MOST for x in tensors)


def _has_values(value: Any) -> bool:
    return type(value) in (torch.Tensor, torch.nn.Parameter) and not isinstance(value, FakeTensor)


def _is_small(name: str, args: Any) -> bool:
    if name in _MADE_OF_NUMBERS:
        return all(isinstance(x, int | float | bool) and abs(x) <= _MOST for x in args)
    if name not in _MADE_OF_SIZES or not args:
        return False
    sizes = args[0] if isinstance(args[0], list | tuple) else [x for x in args if isinstance(x, int)]
    return math.prod(sizes) <= _MOST
