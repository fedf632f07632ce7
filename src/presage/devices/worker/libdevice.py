"""NVIDIA's library of mathematical functions for Triton's interpreter, which lacks it: each by torch on the CPU."""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Callable
from typing import Any

import torch

_NAMED = {
    **dict.fromkeys(("rint", "nearbyint", "llrint"), "round"),
    **{"fabs": "abs", "powi": "pow", "dividef": "div", "fdividef": "div", "cyl_bessel_i0": "i0", "finite": "isfinite"},
}
"""Functions that torch has by another name."""
_MADE: dict[str, Callable[..., torch.Tensor]] = {
    "rcp": torch.reciprocal,
    "remainder": lambda x, y: x - y * torch.round(x / y),
    "cbrt": lambda x: x.sign() * x.abs() ** (1 / 3),
    "rcbrt": lambda x: x.sign() * x.abs() ** (-1 / 3),
    "exp10": lambda x: 10.0**x,
    "fma": lambda x, y, z: x * y + z,
    "sinpi": lambda x: torch.sin(torch.pi * x),
    "cospi": lambda x: torch.cos(torch.pi * x),
    "rhypot": lambda x, y: 1 / torch.hypot(x, y),
    "normcdf": torch.special.ndtr,
    "normcdfinv": torch.special.ndtri,
    "round": lambda x: torch.trunc(x + 0.5 * x.sign()),
    "llround": lambda x: torch.trunc(x + 0.5 * x.sign()),
    "saturate": lambda x: x.clamp(0, 1),
    "fdim": lambda x, y: (x - y).clamp(min=0),
}
_ROUNDED = re.compile(r"[fd]?(rcp|sqrt|rsqrt|add|sub|mul|div|fma)f?_r[nzdu]")
"""Arithmetic with a way of rounding, which torch does not have."""


def install() -> None:
    """Make the functions work in the interpreter, for the rest of this process."""
    interpreter = importlib.import_module("triton.runtime.interpreter")
    theirs = importlib.import_module("triton.language.extra.cuda.libdevice")
    usual = importlib.import_module("triton.language.extra.libdevice")
    is_builtin = importlib.import_module("triton.language.core").is_builtin
    for name, function in [*vars(theirs).items()]:
        if callable(function) and is_builtin(function):
            inside = functools.partial(function, _semantic=interpreter.interpreter_semantic)
            setattr(theirs, name, inside)
            setattr(usual, name, inside)

    def create(self: Any, library: str, path: str, symbol: str, arguments: Any, kind: Any, pure: bool) -> Any:
        tensors = [torch.from_numpy(each.data) for each in arguments]
        found = function_of(symbol)(*tensors).numpy()
        return interpreter.TensorHandle(found.astype(interpreter._get_np_dtype(kind.scalar)), kind.scalar)

    interpreter.InterpreterBuilder.create_extern_elementwise = create


def function_of(symbol: str) -> Callable[..., torch.Tensor]:
    """The function for a symbol, such as `__nv_tanhf`. Raises NotImplementedError.

    >>> function_of("__nv_tanhf") is torch.tanh, function_of("__nv_fast_expf") is torch.exp
    (True, True)
    """
    name = symbol.removeprefix("__nv_").removeprefix("fast_")
    rounded = _ROUNDED.fullmatch(name)
    name = rounded[1] if rounded else name
    for each in (name, name.removesuffix("f"), name.removesuffix("d")):
        found = _MADE.get(each) or getattr(torch, _NAMED.get(each, each), None) or getattr(torch.special, each, None)
        if callable(found):
            return found
    raise NotImplementedError(f"{symbol} is not known here")
