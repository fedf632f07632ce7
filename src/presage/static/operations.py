"""The operations that a step needs by the usual algorithm, and their precision.

torch has formulas for matrix products, convolutions and attention: `Step.flops` holds what they give. For operators
without one it holds the elements of the results, so those that need many operations for each are counted here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any

from presage.static.trace import PRECISIONS, Step, TensorSpec, Trace, tensors_in

_CAUSAL = {
    "_scaled_dot_product_flash_attention": 4,
    "_scaled_dot_product_efficient_attention": 6,
    "_scaled_dot_product_cudnn_attention": 6,
}
"""Attention, with the number of the argument that says whether a query only sees the keys up to its own place."""
_PRODUCTS = {
    **{"mv": 0, "dot": 0, "vdot": 0, "addmv": 1, "addmv_": 1},
    **{"linear": 0, "addmm_": 1, "baddbmm_": 1, "_addmm_activation": 1},
}
"""Products that torch has no formula for, with the number of their first factor among the tensors."""
_MATRIX: dict[str, tuple[int, float, float]] = {
    **{"cholesky": (0, 1 / 3, 0), "linalg_cholesky_ex": (0, 1 / 3, 0), "cholesky_inverse": (0, 2 / 3, 0)},
    **{"linalg_lu_factor_ex": (0, 2 / 3, 0), "_linalg_det": (0, 2 / 3, 0), "_linalg_slogdet": (0, 2 / 3, 0)},
    **{"linalg_inv_ex": (0, 2, 0), "_linalg_solve_ex": (0, 2 / 3, 2), "linalg_lu_solve": (0, 0, 2)},
    **{"cholesky_solve": (1, 0, 2), "linalg_solve_triangular": (0, 0, 1), "triangular_solve": (1, 0, 1)},
}
"""Factorisations and solutions, with the number of the matrix among the tensors, the operations for each of its
elements and each row, and those for each element of the solution and each row."""
_DISTANCES = ("_cdist_forward", "_euclidean_dist", "_pdist_forward")
_FOURIER = ("_fft_c2c", "_fft_r2c", "_fft_c2r")
_IN_TF32 = {
    "_cudnn_rnn": "cudnn_tf32",
    **dict.fromkeys(("_trilinear", "_cdist_forward", "_euclidean_dist", *_MATRIX), "matmul_tf32"),
    **dict.fromkeys(("linear", "addmm_", "baddbmm_", "_addmm_activation"), "matmul_tf32"),
}
"""Operators that may multiply in TF32 though torch has no formula for them, with the setting that forbids it."""

Count = Callable[[Step, Sequence[TensorSpec], TensorSpec], float]


def of_step(trace: Trace, step: Step) -> tuple[float, str]:
    """The operations of a step, and their precision."""
    name = step.base_name
    given = [trace.tensors[number] for number in tensors_in(step.arguments)]
    made = [trace.tensors[number] for number in step.makes]
    if is_causal(step) and len(given) > 1:
        return step.flops * _seen(given[0].shape, given[1].shape), step.precision
    if step.kind != "operator" or name not in _COUNTS or not given or not made:
        return step.flops, step.precision
    if name in _WITHOUT_VECTORS and _lacks_vectors(trace, step):
        return _WITHOUT_VECTORS[name](step, given, made[0]), _precision(step, given[0])
    return _COUNTS[name](step, given, made[0]), _precision(step, given[0])


def _lacks_vectors(trace: Trace, step: Step) -> bool:
    """Whether a decomposition gives values only: its flag says so, or nothing in the trace uses its vectors. While
    torch is traced, it computes them for `eigvalsh` and `svdvals`, too, and drops them."""
    if False in (step.named.get("compute_v"), step.named.get("compute_uv"), _argument(step, 2)):
        return True
    own = {*step.reads}
    used = {number for number in step.makes if trace.uses[number] > (number in own)}
    return bool(used) and all(len(trace.tensors[number].shape) < 2 for number in used)


def is_causal(step: Step) -> bool:
    """Whether the step is attention in which a query only sees the keys up to its own place."""
    name = step.base_name
    return name in _CAUSAL and _argument(step, _CAUSAL[name]) is True


def may_use_tf32(name: str) -> bool:
    """Whether torch's settings decide if this operator multiplies in TF32, though torch has no formula for it."""
    return name in _IN_TF32


def _precision(step: Step, first: TensorSpec) -> str:
    """The precision of an operator on this tensor. Where a trace does not keep the settings, TF32 may be allowed."""
    flag = _IN_TF32.get(step.base_name)
    is_tf32 = flag is not None and first.dtype == "float32" and step.flags.get(flag, True)
    return "tf32" if is_tf32 else PRECISIONS.get(first.dtype, "fp32")


def _seen(queries: Sequence[int], keys: Sequence[int]) -> float:
    """The share of all pairs that causal attention computes: query i sees the keys 0 to i."""
    if min(len(queries), len(keys)) < 2 or not queries[-2] * keys[-2]:
        return 1.0
    count, every = queries[-2], keys[-2]
    least = min(count, every)
    return (least * (least + 1) / 2 + (count - least) * every) / (count * every)


def _argument(step: Step, at: int) -> Any:
    return step.arguments[at] if at < len(step.arguments) else None


def _list(step: Step, at: int) -> list[int]:
    """The integers in an argument that is a list."""
    value = _argument(step, at)
    every = value.get("list", []) if isinstance(value, dict) else []
    return [each for each in every if type(each) is int]


def _size(tensor: TensorSpec, axis: int) -> int:
    """The size of an axis, counted from the end; 1 where there is none."""
    return tensor.shape[axis] if len(tensor.shape) >= -axis else 1


# -- one function per kind of operator --------------------------------------------------------------------------------


def _recurrent(step: Step, given: Sequence[TensorSpec], made: TensorSpec) -> float:
    """All weights are multiplied in each time step of each image."""
    weights = [each.shape for each in given[1:] if len(each.shape) == 2]  # the others are biases and states
    return 2.0 * math.prod(given[0].shape[:-1]) * sum(map(math.prod, weights))


def _product(step: Step, given: Sequence[TensorSpec], made: TensorSpec) -> float:
    at = _PRODUCTS[step.base_name]
    return 2.0 * math.prod(made.shape) * _size(given[min(at, len(given) - 1)], -1)


def _trilinear(step: Step, given: Sequence[TensorSpec], made: TensorSpec) -> float:
    """Two for each product of three elements. The arguments 3 to 5 say where a tensor gets an axis of size 1."""
    shapes: list[list[int]] = []
    for at, tensor in enumerate(given[:3]):
        shapes.append(list(tensor.shape))
        for axis in sorted(_list(step, 3 + at)):
            shapes[-1].insert(axis, 1)
    sizes = zip_longest(*shapes, fillvalue=1)
    return 2.0 * math.prod(0 if 0 in some else max(some) for some in sizes)


def _distances(step: Step, given: Sequence[TensorSpec], made: TensorSpec) -> float:
    """For each pair and each coordinate a difference, its power and a sum; for the Euclidean distance of many points
    torch takes a product of matrices."""
    is_product = step.base_name == "_euclidean_dist" or _argument(step, 2) == 2
    return (2.0 if is_product else 3.0) * math.prod(made.shape) * _size(given[0], -1)


def _matrix(step: Step, given: Sequence[TensorSpec], made: TensorSpec) -> float:
    at, of_matrix, of_solution = _MATRIX[step.base_name]
    matrix = given[min(at, len(given) - 1)]
    rows = min(_size(matrix, -1), _size(matrix, -2))
    return rows * (of_matrix * math.prod(matrix.shape) + of_solution * math.prod(made.shape))


def _sides(matrix: TensorSpec) -> tuple[int, int, int]:
    """The number of matrices, and the rows and columns of each."""
    return math.prod(matrix.shape[:-2]), _size(matrix, -2), _size(matrix, -1)


def _triangular(rows: int, columns: int) -> float:
    """Householder's triangularisation (geqrf)."""
    least = min(rows, columns)
    return 2.0 * least**2 * (max(rows, columns) - least / 3)


def _reflected(rows: int, columns: int, reflections: int) -> float:
    """The first columns of a product of reflections (orgqr)."""
    k = reflections
    return max(0.0, 4.0 * rows * columns * k - 2.0 * (rows + columns) * k**2 + 4 / 3 * k**3)


def _qr(step: Step, given: Sequence[TensorSpec], made: TensorSpec) -> float:
    count, rows, columns = _sides(given[0])
    mode, k = _argument(step, 1), min(rows, columns)
    if step.base_name == "geqrf" or mode == "r":
        return count * _triangular(rows, columns)
    return count * (_triangular(rows, columns) + _reflected(rows, rows if mode == "complete" else k, k))


def _householder(step: Step, given: Sequence[TensorSpec], made: TensorSpec) -> float:
    count, rows, columns = _sides(given[0])
    return count * _reflected(rows, columns, _size(given[1], -1) if len(given) > 1 else columns)


def _symmetric(step: Step, given: Sequence[TensorSpec], made: TensorSpec) -> float:
    """Tridiagonalisation, divide and conquer, and the vectors' way back: 4/3, 4/3 and 2 for each cube of the rows."""
    count, rows, _ = _sides(given[0])
    return count * 14 / 3 * rows**3


def _symmetric_values(step: Step, given: Sequence[TensorSpec], made: TensorSpec) -> float:
    count, rows, _ = _sides(given[0])
    return count * 4 / 3 * rows**3


def _singular(step: Step, given: Sequence[TensorSpec], made: TensorSpec) -> float:
    """The better of Golub and Reinsch's way and that over a QR decomposition, after Golub and Van Loan, table 8.6.1."""
    count, *sides = _sides(given[0])
    n, m = sorted(sides)
    if True in (_argument(step, 1), step.named.get("full_matrices")):
        return count * min(4.0 * m**2 * n + 8 * m * n**2 + 9 * n**3, 4.0 * m**2 * n + 22 * n**3)
    return count * min(14.0 * m * n**2 + 8 * n**3, 6.0 * m * n**2 + 20 * n**3)


def _singular_values(step: Step, given: Sequence[TensorSpec], made: TensorSpec) -> float:
    count, *sides = _sides(given[0])
    n, m = sorted(sides)
    return count * min(4.0 * m * n**2 - 4 / 3 * n**3, 2.0 * m * n**2 + 2 * n**3)


def _fourier(step: Step, given: Sequence[TensorSpec], made: TensorSpec) -> float:
    """5 N log2 N for N complex numbers, half of it for N real ones."""
    whole = (made if step.base_name == "_fft_c2r" else given[0]).shape
    length = math.prod(whole[axis] for axis in set(_list(step, 1)) if -len(whole) <= axis < len(whole))
    return (5.0 if step.base_name == "_fft_c2c" else 2.5) * math.prod(whole) * math.log2(max(1, length))


_COUNTS: dict[str, Count] = {
    "_cudnn_rnn": _recurrent,
    "_trilinear": _trilinear,
    **dict.fromkeys(_PRODUCTS, _product),
    **dict.fromkeys(_MATRIX, _matrix),
    **dict.fromkeys(_DISTANCES, _distances),
    **dict.fromkeys(_FOURIER, _fourier),
    **dict.fromkeys(("linalg_qr", "geqrf"), _qr),
    "linalg_householder_product": _householder,
    "_linalg_eigh": _symmetric,
    "_linalg_svd": _singular,
}
_WITHOUT_VECTORS: dict[str, Count] = {"_linalg_eigh": _symmetric_values, "_linalg_svd": _singular_values}
"""Decompositions that can leave out their vectors, and what they need then."""
