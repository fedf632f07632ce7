"""Makes tensors for a call of one operator: random numbers, and indices within the bounds of what they index."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from presage.devices.worker.replay import span
from presage.static import operator_calls
from presage.static.trace import ITEM_SIZES, TensorSpec, Trace

_PROBABILITIES = ("bernoulli", "bernoulli_", "binary_cross_entropy", "multinomial")
"""Operators that refuse values outside of 0 to 1."""
_ALONG = {
    *("gather", "scatter", "scatter_add", "scatter_reduce", "index_select", "index_add", "index_copy", "index_fill"),
    "index_reduce",
}
"""Operators that take a tensor, one of its dimensions, and indices into that dimension."""
_BY_DIMENSION = {"index", "index_put", "_unsafe_index", "_unsafe_index_put", "_index_put_impl"}
"""Operators that take a tensor and a list: indices into its first dimension, into its second, and so on."""
_ORDINARY = 100
"""Integers that are not indices are less than this."""


def limits(call: Trace) -> dict[int, int]:
    """For each tensor that holds indices, by number, the limit that each index must be less than."""
    return {number: limit for number, limit in _limits(call) if limit > 0}


def _limits(call: Trace) -> Iterator[tuple[int, int]]:
    name, values = operator_calls.base_name(call).rstrip("_"), call.steps[0].arguments

    def shape(at: int) -> tuple[int, ...]:
        return call.tensors[values[at]["tensor"]].shape or (1,)

    if name in _ALONG:
        yield values[2]["tensor"], shape(0)[values[1]]
    elif name in _BY_DIMENSION:
        for index, size in zip(values[1]["list"], shape(0), strict=False):
            if index is not None and call.tensors[index["tensor"]].dtype not in ("bool", "uint8"):
                yield index["tensor"], size
    elif name == "embedding":
        yield values[1]["tensor"], shape(0)[0]
    elif name == "take":
        yield values[1]["tensor"], max(1, _count(call.tensors[values[0]["tensor"]]))
    elif name in ("nll_loss_forward", "nll_loss2d_forward"):
        yield values[1]["tensor"], shape(0)[min(1, len(shape(0)) - 1)]
    elif name in ("_embedding_bag", "_embedding_bag_forward_only"):
        yield values[1]["tensor"], shape(0)[0]
        yield values[2]["tensor"], 1  # where bags begin: all but the last are empty


def _count(spec: TensorSpec) -> int:
    return span(spec) // ITEM_SIZES[spec.dtype]


def make(call: Trace, torch: Any, device: str, generator: Any) -> list[Any]:
    """The call's inputs. A tensor that the trace has on the GPU is on `device`; others are on the host."""
    known = limits(call)
    positive = operator_calls.base_name(call) in _PROBABILITIES
    made = [_tensor(call.tensors[at], known.get(at), positive, torch, device, generator) for at in call.inputs]
    for at, whole, are_lengths in _parts(call):
        count = call.tensors[at].shape[0] + are_lengths
        borders = torch.linspace(0, whole, count, dtype=torch.float64).long()
        made[call.inputs.index(at)].copy_(borders.diff() if are_lengths else borders)
    return made


def _parts(call: Trace) -> Iterator[tuple[int, int, bool]]:
    """The tensors that say how something is divided into parts, by number. For each, the total length, and whether it
    holds the lengths of the parts or their borders."""
    step, name = call.steps[0], operator_calls.base_name(call)
    if name == "repeat_interleave" and (size := step.named.get("output_size")):
        yield step.arguments[0]["tensor"], size, True
    elif name == "segment_reduce":
        for key in ("lengths", "offsets"):
            if found := step.named.get(key):
                yield found["tensor"], call.tensors[step.arguments[0]["tensor"]].shape[0], key == "lengths"


def _tensor(spec: TensorSpec, limit: int | None, positive: bool, torch: Any, device: str, generator: Any) -> Any:
    place, dtype = device if spec.device == "cuda" else "cpu", getattr(torch, spec.dtype)
    if spec.stride:
        tensor = torch.empty_strided(spec.shape, spec.stride, dtype=dtype, device=place)
    else:
        tensor = torch.empty(spec.shape, dtype=dtype, device=place)
    flat = tensor.as_strided((_count(spec),), (1,))  # all its memory; it may show only a part, or some of it twice
    drawn = generator if torch.device(place).type == generator.device.type else None
    if dtype.is_floating_point and dtype.itemsize == 1:
        flat.view(torch.uint8).random_(0, _ORDINARY, generator=drawn)
    elif dtype.is_floating_point or dtype.is_complex:
        flat.uniform_(generator=drawn) if positive else flat.normal_(generator=drawn)
    else:
        flat.random_(0, 2 if dtype is torch.bool else limit or _ORDINARY, generator=drawn)
    return tensor


def needed_bytes(call: Trace) -> int:
    """The bytes of a call's inputs and outputs."""
    return sum(map(span, call.tensors))
