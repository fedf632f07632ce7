"""Arguments of torch's operators as JSON, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

_NAMED = {torch.dtype: "dtype", torch.layout: "layout", torch.memory_format: "memory_format"}


class UnwritableError(Exception):
    """A value that cannot be written down, so that the call cannot be repeated."""


def encode(value: Any, number: Callable[[torch.Tensor], int]) -> Any:
    """A value in JSON; `number` says which tensor of the trace a tensor is."""
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
    """The value; tensors by their numbers, and `device` in place of the GPU."""
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
