"""Elementwise operators of one to three tensors, with broadcasting; casts, copies and fills."""

import math
import random
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as F

DTYPES = (torch.float32, torch.float32, torch.float32, torch.float16, torch.bfloat16)
EVERY = (torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8, torch.bool, torch.float64)
UNARY: tuple[Callable[[torch.Tensor], Any], ...] = (
    *(torch.relu, torch.sigmoid, torch.tanh, torch.exp, torch.log, torch.sqrt, torch.rsqrt, torch.abs, torch.neg),
    *(torch.sin, torch.cos, torch.erf, torch.reciprocal, torch.sign, torch.square, torch.log1p, torch.isnan),
    *(F.gelu, F.silu, F.elu, F.hardtanh, F.leaky_relu, F.softplus, F.mish, F.hardswish, F.hardsigmoid, F.selu),
    *(torch.relu_, torch.sigmoid_, torch.tanh_, torch.exp_),
    lambda x: F.gelu(x, approximate="tanh"),
    lambda x: F.relu6(x, inplace=True),
    lambda x: F.silu(x, inplace=True),
    lambda x: torch.clamp(x, -1.0, 1.0),
    lambda x: torch.clamp(x, min=0.0),
    lambda x: x.pow(2),
    lambda x: x.pow(3.0),
    lambda x: x + 1.0,
    lambda x: x * 0.5,
    lambda x: x / 3.0,
    lambda x: 1.0 - x,
    lambda x: x.mul_(2.0),
    lambda x: x > 0,
    lambda x: x.clone(),
    lambda x: x.masked_fill(x.bool(), 0.0),
)
BINARY: tuple[Callable[[torch.Tensor, torch.Tensor], Any], ...] = (
    *(torch.add, torch.add, torch.add, torch.sub, torch.mul, torch.mul, torch.mul, torch.div, torch.maximum),
    *(torch.minimum, torch.eq, torch.lt, torch.pow, torch.atan2),
    lambda x, y: torch.add(x, y, alpha=0.5),
)
TERNARY: tuple[Callable[[torch.Tensor, torch.Tensor, torch.Tensor], Any], ...] = (
    *(torch.addcmul, torch.addcdiv, torch.lerp),
    lambda x, y, z: torch.where(x.bool(), y, z),
)
FILLS: tuple[Callable[[torch.Tensor], Any], ...] = (
    *(torch.zeros_like, torch.ones_like, torch.rand_like, torch.randn_like),
    lambda x: x.zero_(),
    lambda x: x.fill_(1.0),
    lambda x: torch.full_like(x, 2.0),
    lambda x: torch.zeros(x.shape, dtype=x.dtype, device="cuda"),
    lambda x: torch.arange(x.numel(), device="cuda"),
    lambda x: F.dropout(x, 0.1, training=True),
)


def shape(draw: random.Random, most: int = 27) -> tuple[int, ...]:
    """Of one to five dimensions and up to so many elements, as a power of two; every second one of round sizes."""
    left, found = draw.uniform(4, most), []
    for _ in range(draw.choice((1, 2, 2, 3, 3, 4, 4, 4, 5)) - 1):
        part = draw.uniform(0, left * 0.8)
        left -= part
        found.append(2**part)
    sizes = [*found, 2**left]
    draw.shuffle(sizes)
    rounded = draw.random() < 0.6
    return tuple(max(1, round(size / 8) * 8 if rounded and size > 8 else round(size)) for size in sizes)


def made(sizes: tuple[int, ...], dtype: torch.dtype, draw: random.Random) -> torch.Tensor:
    """Row by row; now and then transposed, a slice of something larger, or with its channels last."""
    x = torch.empty(sizes, dtype=dtype, device="cuda")
    kind = draw.random()
    if len(sizes) > 1 and kind < 0.06:
        return torch.empty((*sizes[:-2], sizes[-1], sizes[-2]), dtype=dtype, device="cuda").transpose(-1, -2)
    if len(sizes) == 4 and kind < 0.18:
        return torch.empty(sizes, dtype=dtype, device="cuda", memory_format=torch.channels_last)
    if sizes and kind > 0.96 and x.numel() < 1 << 25:
        return torch.empty((*sizes[:-1], 2 * sizes[-1]), dtype=dtype, device="cuda")[..., : sizes[-1]]
    return x


def broadcast(sizes: tuple[int, ...], draw: random.Random) -> tuple[int, ...]:
    """A shape that a tensor of these sizes takes as its partner."""
    kind = draw.random()
    if kind < 0.45:
        return sizes
    if kind < 0.6:
        return sizes[-1:]
    if kind < 0.7:
        return (*sizes[:-1], 1)
    if kind < 0.8 and len(sizes) > 2:
        return (1, sizes[1], *(1,) * (len(sizes) - 2))
    if kind < 0.9:
        return ()
    return tuple(size if draw.random() < 0.5 else 1 for size in sizes)


def maps(draw: random.Random) -> None:
    for number in range(900):
        x = made(shape(draw), draw.choice(DTYPES), draw)
        UNARY[number % len(UNARY)](x)
    for _ in range(600):
        sizes, dtype = shape(draw), draw.choice(DTYPES)
        x, y = made(sizes, dtype, draw), made(broadcast(sizes, draw), dtype, draw)
        if draw.random() < 0.2:
            x.add_(y)
        elif draw.random() < 0.2:
            draw.choice(BINARY)(y, x)
        else:
            draw.choice(BINARY)(x, y)
    for _ in range(200):
        sizes, dtype = shape(draw, 26), draw.choice(DTYPES)
        partners = [made(broadcast(sizes, draw), dtype, draw) for _ in range(2)]
        draw.choice(TERNARY)(made(sizes, dtype, draw), *partners)


def copies(draw: random.Random) -> None:
    for _ in range(200):
        x = made(shape(draw), draw.choice(EVERY), draw)
        x.to(draw.choice([each for each in EVERY if each is not x.dtype]))
    for _ in range(260):
        sizes = shape(draw)
        x = torch.empty(sizes, dtype=draw.choice(DTYPES), device="cuda")
        order = list(range(len(sizes)))
        draw.shuffle(order)
        x.permute(order).contiguous()
        if len(sizes) == 4 and draw.random() < 0.4:
            x.contiguous(memory_format=torch.channels_last)
        if draw.random() < 0.3:
            torch.empty_like(x).copy_(made(sizes, x.dtype, draw))
    for number in range(180):
        FILLS[number % len(FILLS)](torch.empty(shape(draw), dtype=draw.choice(DTYPES), device="cuda"))


def custom_kernel(data: object) -> None:
    draw = random.Random(math.pi)
    maps(draw)
    copies(draw)
