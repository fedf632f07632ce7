"""Converts arguments of torch operators to JSON and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

_NAMED = {torch.dtype: "dtype", torch.layout: "layout", torch.memory_format: "memory_format"}


class UnwritableError(Exception):
    """A value cannot be written as JSON, so the call cannot be replayed."""


def encode(value: Any, number: Callable[[torch.Tensor], int]) -> Any:
    """Encode a value as JSON. `number` returns a tensor's number in the trace. Raises UnwritableError."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, torch.Tensor):
        return {"tensor": number(value)}
    if isinstance(value, list | tuple):
        return {"list": [encode(each, number) for each in value]}
    if isinstance(value, torch.device):
        return {"device": value.type}
    if type(value) in _NAMED:
        return {_NAMED[type(value)]: str(value).removeprefix("torch.")}
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    if isinstance(value, torch.Generator):
        return None
    raise UnwritableError(f"a {type(value).__module__}.{type(value).__qualname__}")


def decode(code: Any, tensor: Callable[[int], Any], device: str) -> Any:
    """Decode a value. `tensor` returns the tensor with a number; `device` replaces the device `cuda`."""
    if not isinstance(code, dict):
        return code
    ((tag, content),) = code.items()
    match tag:
        case "tensor":
            return tensor(content)
        case "list":
            return [decode(each, tensor, device) for each in content]
        case "device":
            return torch.device(device if content == "cuda" else content)
        case "complex":
            return complex(*content)
        case _:
            found = getattr(torch, content, None)
            if type(found) not in _NAMED:
                raise ValueError(f"torch has no {tag} '{content}'")
            return found
