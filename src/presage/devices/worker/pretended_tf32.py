"""Multiplies matrices in TF32 on the CPU where a GPU would: in Triton's `tl.dot` of single precision unless it asks for
more digits, and in torch where a module allows it. Convolutions stay in single precision, since cuDNN does not always
use TF32."""

from __future__ import annotations

import contextlib
import importlib
from typing import Any

import numpy as np
import torch

from presage.devices.worker.in_tf32 import in_single
from presage.static.tracing.recorder import allows_tf32

_PRODUCTS = {"mm": (0, 1), "bmm": (0, 1), "addmm": (1, 2), "baddbmm": (1, 2)}
"""For each operator of torch, which arguments are multiplied."""
_OPERATORS = torch.library.Library("aten", "IMPL")
"""Keeps replaced operators alive."""


def install() -> None:
    """For the rest of this process, round the factors of products to TF32."""
    for name in _PRODUCTS:
        _OPERATORS.impl(name, _product(name), "CPU")
    with contextlib.suppress(ImportError, AttributeError):
        _install_in_triton()


def _product(name: str) -> Any:
    """The operator by its variant with an `out`, which is another one to torch and so not replaced."""
    function, factors = getattr(torch.ops.aten, name).out, _PRODUCTS[name]

    def product(*given: Any, **named: Any) -> Any:
        is_rounded = given[-1].dtype is torch.float32 and allows_tf32(torch.backends.cuda.matmul)
        values = [in_single(value) if is_rounded and at in factors else value for at, value in enumerate(given)]
        return function(*values, **named, out=given[-1].new_empty(0))

    return product


def _install_in_triton() -> None:
    builder = importlib.import_module("triton.runtime.interpreter").InterpreterBuilder
    tf32 = importlib.import_module("triton._C.libtriton").ir.INPUT_PRECISION.TF32
    plain = builder.create_dot

    def create_dot(self: Any, left: Any, right: Any, sums: Any, precision: Any, *more: Any) -> Any:
        kept = left.data, right.data
        if precision == tf32 and all(each.dtype == np.float32 for each in kept):
            left.data, right.data = (in_single(torch.from_numpy(np.ascontiguousarray(each))).numpy() for each in kept)
        try:
            return plain(self, left, right, sums, precision, *more)
        finally:
            left.data, right.data = kept

    builder.create_dot = create_dot
