"""Passes tensors between processes: takes data apart into its tensors and a template, and puts it together again."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from typing import Any

_PLAIN = (bool, int, float, str)


def split(data: Any, torch: Any) -> tuple[Any, list[Any], list[str]]:
    """Take data apart. Returns a template that can be sent as JSON, the tensors, and the Python expression for each
    tensor. Raises TypeError for data that cannot be sent."""
    tensors: list[Any] = []
    names: list[str] = []

    def visit(part: Any, name: str) -> Any:
        if isinstance(part, torch.Tensor):
            tensors.append(_plain_tensor(part, name, torch))
            names.append(name)
            return {"tensor": len(tensors) - 1}
        if part is None or type(part) in _PLAIN:
            return {"value": part}
        if type(part) in (tuple, torch.Size, list):
            kind = "list" if type(part) is list else "tuple"
            return {kind: [visit(inner, f"{name}[{i}]") for i, inner in enumerate(part)]}
        if type(part) is dict and all(type(key) in _PLAIN for key in part):
            return {"dict": [[key, visit(inner, f"{name}[{key!r}]")] for key, inner in part.items()]}
        if type(part) is torch.dtype:
            return {"dtype": _dtype_name(part)}
        kind = f"{type(part).__module__}.{type(part).__qualname__}"
        raise TypeError(f"{name} is a {kind}, which cannot be handed to another process")

    return visit(data, "data"), tensors, names


def join(template: Any, tensors: Sequence[Any], torch: Any) -> Any:
    """Put together what `split` has taken apart, with these tensors."""
    ((kind, content),) = template.items()
    match kind:
        case "tensor":
            return tensors[content]
        case "tuple" | "list":
            parts = [join(part, tensors, torch) for part in content]
            return tuple(parts) if kind == "tuple" else parts
        case "dict":
            return {key: join(part, tensors, torch) for key, part in content}
        case "dtype":
            return getattr(torch, content)
        case _:
            return content


def completing(torch: Any) -> Callable[[Any], Any]:
    """Return a function that gives a call's output with all its values in memory. torch puts off a conjugation or a
    change of sign until somebody reads the values. What a module has put around torch's functions does not see it. A
    tuple with names, such as `torch.topk` returns, becomes a plain one, without running code of its class."""
    kind, base, plainly = torch.Tensor, torch._C.TensorBase, torch._C.DisableTorchFunction

    def complete(output: Any) -> Any:
        if issubclass(type(output), tuple):
            return tuple(map(complete, tuple.__iter__(output)))
        if type(output) is list:
            return list(map(complete, output))
        if type(output) is not kind:
            return output
        with plainly():
            return base.resolve_neg(base.resolve_conj(output))

    return complete


def arrange(arguments: dict[str, Any], tensors: Sequence[Any], torch: Any) -> Any:
    """The `data` of a call: its template with the tensors, or else the inputs and then the problem's parameters."""
    if "data" in arguments:
        return join(arguments["data"], tensors, torch)
    return (*tensors, *arguments["parameters"])


def describe(tensor: Any) -> dict[str, Any]:
    return {"dtype": _dtype_name(tensor.dtype), "shape": list(tensor.shape), "stride": list(tensor.stride())}


def is_dense(shape: Sequence[int], stride: Sequence[int]) -> bool:
    """Whether the elements are contiguous in memory, in any order of the dimensions.

    >>> is_dense((2, 3), (3, 1)), is_dense((2, 3), (1, 2)), is_dense((2, 3), (4, 1)), is_dense((2, 3), (0, 1))
    (True, True, False, False)
    """
    step = 1
    for distance, size in sorted((d, s) for d, s in zip(stride, shape, strict=True) if s != 1):
        if distance != step and 0 not in shape:
            return False
        step *= size
    return True


def share_memory(one: Any, other: Any) -> bool:
    """Whether two tensors are views of one storage, also if they have no values."""
    return bool(one.untyped_storage()._cdata == other.untyped_storage()._cdata)


def to_bytes(tensor: Any, torch: Any) -> Any:
    """The memory of a dense tensor as a flat tensor of bytes."""
    return tensor.as_strided((tensor.numel(),), (1,), tensor.storage_offset()).view(torch.uint8)


def over(memory: Any, array: dict[str, Any], torch: Any) -> Any:
    """A tensor that views these bytes."""
    flat = memory.view(getattr(torch, array["dtype"]))
    return flat.as_strided(array["shape"], array["stride"]) if "stride" in array else flat.view(array["shape"])


def size_of(array: dict[str, Any], torch: Any) -> int:
    size: int = math.prod(array["shape"]) * getattr(torch, array["dtype"]).itemsize
    return size


def host_bytes(address: int, size: int, torch: Any) -> Any:
    """This process's memory as a tensor of bytes."""
    if size == 0:
        return torch.empty(0, dtype=torch.uint8)
    return torch.frombuffer((ctypes.c_char * size).from_address(address), dtype=torch.uint8)


def gpu_bytes(address: int, size: int, torch: Any) -> Any:
    """Memory on the GPU as a tensor of bytes."""
    interface = {"shape": (size,), "typestr": "|u1", "data": (address, False), "version": 3}
    holder = type("Memory", (), {"__cuda_array_interface__": interface})()
    return torch.as_tensor(holder, device="cuda")


def _plain_tensor(tensor: Any, name: str, torch: Any) -> Any:
    """Return the tensor detached and dense. A tensor with gaps or overlaps in its memory is replaced by a contiguous
    copy."""
    if tensor.layout is not torch.strided:
        raise TypeError(f"{name} is a tensor with layout {tensor.layout}; only plain ones can be handed on")
    tensor = tensor.detach().resolve_conj().resolve_neg()
    return tensor if is_dense(tensor.shape, tensor.stride()) else tensor.contiguous()


def _dtype_name(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")
