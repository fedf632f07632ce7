"""Features of an operator's call: numbers that say how long it should take on a GPU.

Three kinds of calls have features of their own: matrix products, convolutions (treated as products), and all others.
Sizes are logarithms to base 2. Features that depend on the GPU are computed for the given hardware.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from presage.static import operations, roofline
from presage.static.hardware import Hardware
from presage.static.operator_calls import base_name
from presage.static.trace import ITEM_SIZES, TensorSpec, Trace, tensors_in

Row = dict[str, float]

KINDS = ("product", "convolution", "other")
LAUNCH_NS = 2_000.0
"""Nanoseconds that the shortest kernels take, approximately."""
_PRODUCTS = {
    **{"mm": 0, "bmm": 0, "addmm": 1, "baddbmm": 1, "mv": 0, "addmv": 1, "dot": 0, "linear": 0},
    "_addmm_activation": 1,
}
"""The operators for matrix products, with the index of the first factor among the input tensors."""
_CONVOLUTIONS = ("convolution", "cudnn_convolution", "_convolution")
_LIKE = {
    **dict.fromkeys(("full", "ones", "new_full", "new_ones", "new_zeros", "scalar_tensor"), "zeros"),
    **{"ge": "gt", "le": "lt", "ne": "eq", "clamp_max": "clamp_min", "expm1": "exp", "log2": "log", "exp2": "exp"},
    **{"var_mean": "var", "std_mean": "std", "_addmm_activation": "addmm"},
}
"""Operators that cost as much as another one, of which there are more measurements."""
_TILES = ((128, 256), (128, 128), (64, 64))
_BANDWIDTH, _PEAK, _CACHE, _SMS = 1e12, 1e13, 40 << 20, 100
"""Values of a mid-range GPU, used where those of the hardware are not known."""
_ALIGNED = 4
"""Logarithm to base 2 of the most bytes that one access of a thread moves (16)."""
_BY_ONE_BLOCK = ("layer_norm", "group_norm", "batch_norm", "softmax", "cum")
"""Operators whose kernels give a whole row to one block, however long the row is."""
_SERIAL_S = 5e-8
"""Least seconds that such a block takes per element of a row whose elements are not adjacent."""
_TIME_STEP_S = 5e-7
"""Least seconds that a recurrent layer takes for a time step, which waits for the one before."""
_ROWWISE = ("softmax", "cumsum", "cumprod", "sort", "topk", "norm", "sum", "mean", "var", "std", "prod", "max", "min")


def kind_of(call: Trace) -> str:
    """The kind of a call, one of KINDS."""
    name = base_name(call)
    if name in _CONVOLUTIONS:
        return "convolution"
    return "product" if name in _PRODUCTS and len(_inputs(call)) >= 2 else "other"


def family(call: Trace) -> str:
    """The operator's name without its overload and without the underscore of in-place operators, or that of an operator
    that costs the same."""
    name = base_name(call)
    name = name.rstrip("_") or name
    return _LIKE.get(name, name)


def features(call: Trace, hardware: Hardware) -> tuple[Row, float]:
    """The features of a call, and the least nanoseconds that it can take, including LAUNCH_NS."""
    gpu = _Gpu(hardware)
    describe: Callable[[Trace, _Gpu], Row] = {"product": _product, "convolution": _convolution, "other": _other}[
        kind_of(call)
    ]
    row = _common(call, gpu)
    row |= describe(call, gpu)
    flops, precision = _operations(call)
    moved, worked = _moved_bytes(call) / gpu.bandwidth, flops / gpu.peak(precision)
    row["memory_ns"], row["compute_ns"] = _log(1e9 * moved), _log(1e9 * worked)
    least = LAUNCH_NS + 1e9 * max(moved, worked, row.pop("_quantised_s", 0.0))
    row["least_ns"] = _log(least)
    if "alone_ns" in row:  # only for operators on rows: few rows keep few multiprocessors busy
        row["alone"] = row["alone_ns"] - row["least_ns"]
        row["strided"] -= row["least_ns"]
    return row, least


class _Gpu:
    """The numbers of a GPU, with those of a mid-range GPU as fallback."""

    def __init__(self, hardware: Hardware) -> None:
        self._peaks = hardware.peak_flops
        self.bandwidth = hardware.bandwidth or _BANDWIDTH
        self.cache = hardware.l2_bytes or _CACHE
        self.multiprocessors = hardware.multiprocessors or _SMS

    def peak(self, precision: str) -> float:
        usual = self._peaks.get("fp32", _PEAK)
        return self._peaks.get(precision) or (usual / 2 if precision == "fp64" else usual)


def _log(value: float) -> float:
    return math.log2(max(value, 1e-3))


def _inputs(call: Trace) -> list[TensorSpec]:
    """The input tensors, in the order of the arguments. A tensor that is passed twice is listed twice."""
    step = call.steps[0]
    return [call.tensors[number] for number in tensors_in([*step.arguments, *step.named.values()])]


def _results(call: Trace) -> list[TensorSpec]:
    return [call.tensors[number] for number in call.steps[0].makes]


def _strides(tensor: TensorSpec) -> Sequence[int]:
    if tensor.stride:
        return tensor.stride
    found = [1]
    for size in tensor.shape[:0:-1]:
        found.append(found[-1] * size)
    return found[::-1][: len(tensor.shape)]


def _moved_bytes(call: Trace) -> int:
    return roofline.moved_bytes(call, call.steps[0])


def _operations(call: Trace) -> tuple[float, str]:
    return operations.of_step(call, call.steps[0])


def _alignment(elements: int, tensor: TensorSpec) -> float:
    """Logarithm to base 2 of the bytes to which rows of this many elements are aligned, at most _ALIGNED."""
    size = elements * ITEM_SIZES[tensor.dtype]
    return float(min(_ALIGNED, (size & -size).bit_length() - 1)) if size else float(_ALIGNED)


def _common(call: Trace, gpu: _Gpu) -> Row:
    inputs, results = _inputs(call), _results(call)
    size, (flops, precision) = _moved_bytes(call), _operations(call)
    given, made = (sum(x.bytes for x in some) for some in (inputs, results))
    return {
        "bytes": _log(size),
        "flops": _log(flops),
        "read": _log(given),
        "written": _log(made),
        "in_cache": _log(size / gpu.cache),
        "item": float(ITEM_SIZES[inputs[0].dtype] if inputs else 4),
        "bfloat16": float(bool(inputs) and inputs[0].dtype == "bfloat16"),
        "tf32": float(precision == "tf32"),
        "half": float(precision in ("fp16", "bf16", "fp8")),
        "channels_last": float(bool(inputs) and _is_channels_last(inputs[0])),
    }


def _is_channels_last(tensor: TensorSpec) -> bool:
    return len(tensor.shape) >= 4 and tensor.shape[1] > 1 and _strides(tensor)[1] == 1


# -- products ---------------------------------------------------------------------------------------------------------


def _product(call: Trace, gpu: _Gpu) -> Row:
    first = _PRODUCTS[base_name(call)]
    left, right = _inputs(call)[first : first + 2]
    batch = math.prod(left.shape[:-2])
    m = left.shape[-2] if len(left.shape) > 1 else 1
    k = left.shape[-1] if left.shape else 1
    n = right.shape[-1] if len(right.shape) > 1 else 1
    row = {f"left_{name}": value for name, value in _matrix(left).items()}
    row |= {f"right_{name}": value for name, value in _matrix(right).items()}
    row["bias"] = float(first)
    row["bias_rank"] = float(len(_inputs(call)[0].shape)) if first else 0.0
    row["vector"] = float(len(right.shape) == 1)
    return row | _as_product(call, gpu, batch, m, n, k)


def _matrix(tensor: TensorSpec) -> Row:
    """Features of a matrix's layout in memory."""
    strides = _strides(tensor)
    if len(strides) < 2:
        return {"transposed": 0.0, "aligned": _alignment(tensor.shape[-1] if tensor.shape else 1, tensor)}
    transposed = strides[-1] != 1 and strides[-2] == 1
    return {
        "transposed": float(transposed),
        "aligned": _alignment(strides[-1] if transposed else strides[-2], tensor),
        "repeated": float(strides[0] == 0),
    }


def _as_product(call: Trace, gpu: _Gpu, batch: int, m: int, n: int, k: int) -> Row:
    """Features of `batch` products of matrices of m by k and k by n."""
    flops = 2.0 * batch * m * n * k
    peak = gpu.peak(_operations(call)[1])
    row = {
        **{"batch": _log(batch), "m": _log(m), "n": _log(n), "k": _log(k)},
        "outputs": _log(batch * m * n),
        "intensity": _log(flops / max(1, _moved_bytes(call))),
        "squareness": _log(m) - _log(n),
        "smaller": _log(min(m, n)),
        "larger": _log(max(m, n)),
        "deep": _log(k / max(1.0, math.sqrt(m * n))),
        "k_rest": float(k % 8 == 0) + float(k % 16 == 0) + float(k % 32 == 0),
        "n_rest": float(n % 8 == 0) + float(n % 16 == 0) + float(n % 64 == 0),
    }
    best = math.inf
    for high, wide in _TILES:
        tiles = batch * -(-m // high) * -(-n // wide)
        waves = tiles / gpu.multiprocessors
        seconds = max(1, math.ceil(waves)) * high * wide * 2.0 * k * gpu.multiprocessors / peak
        row[f"waves_{high}x{wide}"] = _log(waves)
        row[f"filled_{high}x{wide}"] = waves / max(1, math.ceil(waves))
        row[f"tiled_{high}x{wide}"] = _log(seconds * peak / max(1.0, flops))
        row[f"tiled_ns_{high}x{wide}"] = _log(1e9 * seconds)
        best = min(best, seconds)
    row["_quantised_s"] = min(best, 4 * flops / peak)
    return row


# -- convolutions -----------------------------------------------------------------------------------------------------


def _numbers(value: Any) -> list[int]:
    """The integers in an argument that is an integer or a list."""
    found = value["list"] if isinstance(value, dict) and "list" in value else [value]
    return [each for each in found if type(each) is int]


def _argument(call: Trace, at: int) -> Any:
    arguments = call.steps[0].arguments
    return arguments[at] if at < len(arguments) else None


def _convolution(call: Trace, gpu: _Gpu) -> Row:
    source, weight = _inputs(call)[:2]
    out = _results(call)[0]
    transposed, groups = _argument(call, 6) is True, max([1, *_numbers(_argument(call, 8))])
    window = weight.shape[2:]
    channels, made = source.shape[1], out.shape[1]
    places = source.shape[0] * math.prod((source if transposed else out).shape[2:])
    strides, padding, dilation = (_numbers(_argument(call, at)) for at in (3, 4, 5))
    taps = math.prod(window)
    if transposed:  # transposed: each input position contributes to a window of outputs
        m, n, k = places, made // groups * taps, channels // groups
    else:
        m, n, k = places, made // groups, channels // groups * taps
    row = _as_product(call, gpu, groups, m, n, k)
    outputs, inputs = (source.shape[0] * math.prod(x.shape[2:]) for x in (out, source))
    row |= {
        **{"images": _log(source.shape[0]), "channels": _log(channels), "made": _log(made), "taps": _log(taps)},
        **{"groups": _log(groups), "depthwise": float(groups == channels), "axes": float(len(window))},
        **{"transposed": float(transposed), "stride": _log(math.prod(strides)), "dilation": _log(math.prod(dilation))},
        **{"padded": float(sum(padding)), "bias": float(_argument(call, 2) is not None)},
        "width": _log(out.shape[-1]),
        "area": _log(math.prod(out.shape[2:])),
        "shrinks": _log(inputs / max(1, outputs)),
        "one_by_one": float(taps == 1),
        "three_by_three": float(list(window) == [3] * len(window)),
        "window_first": float(window[0]),
        "window_last": float(window[-1]),
        "channels_aligned": _alignment(channels // groups, source),
        "made_aligned": _alignment(made // groups, out),
        "width_aligned": _alignment(out.shape[-1], out),
        "area_aligned": _alignment(math.prod(out.shape[2:]), out),
        "per_group": _log(channels // groups),
        "made_per_group": _log(made // groups),
        "weight_channels_last": float(_is_channels_last(weight)),
        "out_channels_last": float(_is_channels_last(out)),
        "weights": _log(weight.bytes),
        "weight_share": _log(weight.bytes / max(1, _moved_bytes(call))),
    }
    row["made_tiles"] = _log(-(-outputs // 128) * -(-made // 128) / gpu.multiprocessors)
    row["grouped_ns"] = _log(1e9 * groups * 2.0 * m * n * k / gpu.peak("fp32"))
    if groups > 1:  # groups may be smaller than a tile, so tiles do not bound the time
        row["_quantised_s"] = 0.0
    return row


# -- others -----------------------------------------------------------------------------------------------------------


def _other(call: Trace, gpu: _Gpu) -> Row:
    inputs, results = _inputs(call), _results(call)
    largest = max(inputs, key=lambda x: math.prod(x.shape), default=None) or (results[0] if results else None)
    out = max(results, key=lambda x: math.prod(x.shape), default=largest)
    if largest is None or out is None:
        return {}
    taken, made = (math.prod(x.shape) for x in (largest, out))
    row = {
        "elements": _log(made),
        "taken": _log(taken),
        "ratio": _log(taken / max(1, made)),
        "inputs": float(len(inputs)),
        "results": float(len(results)),
        "dense": float(all(map(_is_dense, inputs))),
        "alike": float(all(list(_strides(x)) == list(_strides(out)) for x in inputs if x.shape == out.shape)),
        "broadcast": float(any(bool(x.shape) and math.prod(x.shape) < taken for x in inputs)),
        "scalar": float(any(math.prod(x.shape) == 1 for x in inputs)),
        "last": _log(largest.shape[-1] if largest.shape else 1),
        "last_out": _log(out.shape[-1] if out.shape else 1),
        "last_aligned": _alignment(largest.shape[-1] if largest.shape else 1, largest),
        "last_stride": _log(_strides(largest)[-1] if largest.shape else 1),
        "item_out": float(ITEM_SIZES[out.dtype]),
        "rank": float(len(largest.shape)),
        "arguments": float(len(call.steps[0].arguments)),
        "threads": _log(made / (2048 * gpu.multiprocessors)),
    }
    return row | _rows(call, gpu, largest) | _window(call, out) | _special(call, inputs, largest)


def _is_dense(tensor: TensorSpec) -> bool:
    """Whether its elements fill a contiguous range of memory, in any order of the axes."""
    expected = 1
    for step, size in sorted((s, n) for s, n in zip(_strides(tensor), tensor.shape, strict=True) if n > 1):
        if step != expected:
            return False
        expected *= size
    return True


def _rows(call: Trace, gpu: _Gpu, tensor: TensorSpec) -> Row:
    """Features of the rows that an operator processes along some axes: their length, stride and number."""
    axes = _axes(call, tensor)
    if not axes:
        return {}
    length = math.prod(tensor.shape[axis] for axis in axes)
    rows = math.prod(tensor.shape) / max(1, length)
    apart = min(_strides(tensor)[axis] for axis in axes)
    size, alone = length * ITEM_SIZES[tensor.dtype], gpu.bandwidth / gpu.multiprocessors
    seconds = size * math.ceil(rows / gpu.multiprocessors) / alone
    by_one = any(word in base_name(call) for word in _BY_ONE_BLOCK)
    return {
        "_quantised_s": max(seconds, _SERIAL_S * length if apart > 1 else 0.0) if by_one else 0.0,
        "alone_ns": _log(1e9 * seconds),
        "strided": _log(length if apart > 1 else 1),
        "row_length": _log(length),
        "rows": _log(rows),
        "row_stride": _log(apart),
        "row_bytes": _log(size),
        "rows_per_sm": _log(rows / gpu.multiprocessors),
    }


def _axes(call: Trace, tensor: TensorSpec) -> list[int]:
    name, rank = base_name(call), len(tensor.shape)
    if "batch_norm" in name:
        return [axis for axis in range(rank) if axis != 1]
    if "layer_norm" in name:
        return list(range(rank - len(_numbers(_argument(call, 1))), rank))
    if "group_norm" in name:
        return list(range(1, rank))
    if not any(word in name for word in _ROWWISE) or "pool" in name:
        return []
    at = 2 if name in ("linalg_vector_norm", "norm", "topk") else 1
    given = [axis % rank for axis in _numbers(_argument(call, at)) if rank and -rank <= axis < rank]
    if name in ("sort", "topk") and not given and rank:
        return [rank - 1]
    return sorted(set(given)) or list(range(rank))


def _window(call: Trace, out: TensorSpec) -> Row:
    if "pool" not in base_name(call):
        return {}
    window = _numbers(_argument(call, 1))
    step = _numbers(_argument(call, 2)) or window
    return {
        "window": _log(math.prod(window)),
        "window_work": _log(math.prod(window) * math.prod(out.shape)),
        "window_step": _log(math.prod(step)),
        "out_width": _log(out.shape[-1] if out.shape else 1),
    }


def _special(call: Trace, inputs: Sequence[TensorSpec], largest: TensorSpec) -> Row:
    name = base_name(call)
    if "attention" in name and len(inputs) >= 2:
        return _attention(call, *inputs[:2])
    if name == "_cudnn_rnn":
        return _recurrent(call, inputs)
    if name in ("cat", "stack"):
        sizes = [math.prod(x.shape) for x in inputs] or [1]
        return {"parts": float(len(sizes)), "smallest": _log(min(sizes)), "part_axis": float(_last_axis(call, largest))}
    if name in ("clone", "_to_copy", "copy", "copy_", "contiguous"):
        out = (_results(call) or [largest])[0]
        turns = list(_strides(largest)) != list(_strides(out))
        return {"turns": float(turns), "casts": float(largest.dtype != out.dtype)}
    return {}


def _attention(call: Trace, query: TensorSpec, key: TensorSpec) -> Row:
    return {
        **{"queries": _log(query.shape[-2]), "keys": _log(key.shape[-2]), "head": _log(query.shape[-1])},
        "heads": _log(math.prod(query.shape[:-2])),
        "causal": float(operations.is_causal(call.steps[0])),
        "query_stride": _log(_strides(query)[-2]),
    }


def _recurrent(call: Trace, inputs: Sequence[TensorSpec]) -> Row:
    (sequence, images), layers = _sequence(call, inputs[0]), sum(_numbers(_argument(call, 9)))
    serial = sequence * layers
    return {
        "_quantised_s": _TIME_STEP_S * serial,
        **{"sequence": _log(sequence), "images": _log(images)},
        **{"serial": _log(serial), "serial_flops": _log(_operations(call)[0] / max(1, serial))},
        "mode": float(sum(_numbers(_argument(call, 6)))),
        "matrices": float(sum(len(x.shape) == 2 for x in inputs[1:])),
        "hidden": _log(inputs[2].shape[-1] if len(inputs) > 2 else 1),
    }


def _sequence(call: Trace, source: TensorSpec) -> tuple[int, int]:
    """The time steps of a recurrent layer, and the images in the first of them."""
    sizes = _numbers(_argument(call, 14))  # of packed sequences: the images in each time step
    if sizes:
        return len(sizes), sizes[0]
    steps, images = source.shape[:2]
    return (images, steps) if _argument(call, 10) is True else (steps, images)


def _last_axis(call: Trace, tensor: TensorSpec) -> bool:
    axis = next(iter(_numbers(_argument(call, 1))), 0)
    return bool(tensor.shape) and axis % len(tensor.shape) == len(tensor.shape) - 1
