"""Records launches of Triton kernels as steps of a trace, read from the arguments of Triton's launcher."""

from __future__ import annotations

import operator
import struct
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import torch

from presage.static import cubin
from presage.static.hardware import WARP
from presage.static.trace import Launch, Parameter
from presage.static.tracing.recorder import Recorder

_INTEGERS = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "u1": 1, "u8": 1, "u16": 2, "u32": 4, "u64": 8}
_MAP_BYTES = 128
_FLOATS = {"fp16": "<e", "f16": "<e", "fp32": "<f", "f32": "<f", "fp64": "<d", "f64": "<d"}


class UnknownArgumentError(Exception):
    """An argument of a type that this module cannot record."""


def record(recorder: Recorder, source: Any, metadata: Any, code: bytes, grid: tuple[int, ...], rest: Any) -> None:
    """Record a launch. Call this before the launch happens. `rest` ends with the kernel's arguments."""
    others: list[torch.Tensor] = []
    try:
        parameters = tuple(_parameters(recorder, source, metadata, grid, rest))
    except UnknownArgumentError as error:
        recorder.lack(f"{metadata.name} takes {error}")
        given = [getattr(value, "base", value) for value in rest]  # a tensor descriptor has a base
        parameters, others = (), [value for value in given if isinstance(value, torch.Tensor)]
    x, y, z = (operator.index(size) for size in grid)
    blocks = operator.index(getattr(metadata, "num_ctas", 1))
    launch = Launch(
        cubin=0,
        grid=(x * blocks, y, z),
        block=(threads(metadata, code), 1, 1),
        shared=operator.index(metadata.shared),
        parameters=parameters,
        cluster=(blocks, 1, 1),
        cooperative=bool(getattr(metadata, "launch_cooperative_grid", False)),
        overlapping=bool(getattr(metadata, "launch_pdl", False)),
        options=options(source, metadata),
    )
    recorder.launch("triton", str(metadata.name), launch, code, others)


def threads(metadata: Any, code: bytes) -> int:
    return _required_threads(code, metadata.name) or WARP * int(metadata.num_warps)


@lru_cache(maxsize=64)
def _required_threads(code: bytes, name: str) -> int | None:
    return cubin.read(code)[name].required_threads


def options(source: Any, metadata: Any) -> dict[str, Any]:
    return {
        "num_warps": metadata.num_warps,
        "num_stages": metadata.num_stages,
        "num_ctas": getattr(metadata, "num_ctas", 1),
        "constants": _constants(source),
        "arguments": _arguments(source),
    }


def _parameters(
    recorder: Recorder, source: Any, metadata: Any, grid: tuple[int, ...], rest: Any
) -> Iterator[Parameter]:
    kinds = list(source.signature.values())
    if len(rest) < len(kinds):
        raise UnknownArgumentError("more arguments than are passed")
    described = iter(getattr(metadata, "tensordesc_meta", None) or ())
    for kind, value in _flat(kinds, rest[-len(kinds) :]):
        if str(kind).startswith("tensordesc") and not recorder.has_gpu:
            recorder.notes[f"{metadata.name} takes an argument of type {str(kind)[:60]}"] = None
            yield from _descriptor(recorder, value, next(described, None))
        else:
            yield _parameter(recorder, str(kind), value)
    if size := int(getattr(metadata, "global_scratch_size", 0) or 0):
        size *= int(metadata.num_ctas) * grid[0] * grid[1] * grid[2]
        named = {"dtype": torch.uint8, "device": torch.device("cuda")}
        with recorder.pausing():
            scratch = torch.empty([size], **named)
        recorder.operator("allocation", "aten::empty.memory_format", [[size]], named, scratch)
        yield recorder.pointer(scratch)


def _flat(kinds: Any, values: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the type and value of each argument that exists at run time. A tuple is passed as its parts."""
    for kind, value in zip(kinds, values, strict=True):
        if isinstance(kind, tuple | list):
            yield from _flat(kind, value)
        elif kind != "constexpr":
            yield kind, value


def _parameter(recorder: Recorder, kind: str, value: Any) -> Parameter:
    if kind.startswith("*"):
        if isinstance(value, torch.Tensor):
            return recorder.pointer(value)
        address = value.data_ptr() if hasattr(value, "data_ptr") else int(value or 0)
        return recorder.parameter(struct.pack("<Q", address))
    if kind in _INTEGERS:
        size = _INTEGERS[kind]
        return Parameter((int(value) % (1 << 8 * size)).to_bytes(size, "little"))
    if kind in _FLOATS:
        return Parameter(struct.pack(_FLOATS[kind], float(value)))
    if kind == "bf16":
        return Parameter(struct.pack("<f", float(value))[2:])
    raise UnknownArgumentError(f"an argument of type {kind[:60]}")


def _descriptor(recorder: Recorder, value: Any, map_of: Any) -> Iterator[Parameter]:
    """The parameters that a tensor descriptor becomes: a map for the tensor memory accelerator, or the tensor's address
    where there is none; then the tensor's shape and strides. What is in the map is not known without a GPU. The numbers
    are, and decide how often loops run."""
    place = recorder.pointer(value.base)
    shape, strides = ([int(size) for size in sizes] for sizes in (value.shape, value.strides))
    if map_of is None:
        yield place
        yield from map(_wide, (*shape, *strides))
        yield from [Parameter(bytes(1))] * 2
    else:
        yield Parameter(bytes(_MAP_BYTES), place.pointers)
    yield from (Parameter(size.to_bytes(4, "little")) for size in shape)
    yield from map(_wide, strides)


def _wide(number: int) -> Parameter:
    return Parameter(number.to_bytes(8, "little"))


def _constants(source: Any) -> dict[str, Any]:
    names = list(source.signature)
    return {
        names[path[0]]: value if isinstance(value, int | float | str | None) else repr(value)
        for path, value in source.constants.items()
        if len(path) == 1
    }


def _arguments(source: Any) -> list[dict[str, Any]]:
    """Each run-time argument: its type, and whether Triton may assume that it is a multiple of 16."""
    aligned = {path for path, attributes in source.attrs.items() if ["tt.divisibility", 16] in map(list, attributes)}
    return [
        {"name": name, "type": str(kind), "divisible_by_16": (index,) in aligned}
        for index, (name, kind) in enumerate(source.signature.items())
        if kind != "constexpr"
    ]
