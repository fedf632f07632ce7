"""Convolutions of volumes, dense, grouped and transposed, with windows and strides that differ by axis, and what models
do behind them: cuDNN has many kernels for these, and which one it takes depends on all of that."""

import math
import random

import torch
from torch.nn import functional as F

PRECISIONS = ((torch.float32, True), (torch.float32, True), (torch.float32, True), (torch.float32, False),
              (torch.float16, True), (torch.bfloat16, True))  # fmt: skip
BATCHES = (1, 2, 4, 8, 16, 16, 32, 64, 128)
CHANNELS = (1, 3, 3, 8, 16, 16, 24, 32, 32, 48, 64, 64, 96, 128, 128, 192, 256, 320, 512)
SIDES = ((16, 32, 32), (16, 16, 16), (32, 32, 32), (16, 64, 64), (8, 16, 16), (64, 64, 64), (8, 32, 32), (24, 48, 48),
         (12, 24, 24), (16, 32, 64), (4, 56, 56), (8, 28, 28), (4, 14, 14), (10, 20, 20), (48, 48, 48), (32, 16, 16))  # fmt: skip
WINDOWS = ((3, 3, 3), (3, 3, 3), (3, 3, 3), (3, 3, 3), (1, 1, 1), (2, 2, 2), (4, 4, 4), (5, 5, 5), (3, 5, 7), (1, 3, 3),
           (3, 1, 1), (3, 5, 5), (7, 7, 7))  # fmt: skip
STRIDES = ((1, 1, 1), (1, 1, 1), (1, 1, 1), (2, 2, 2), (2, 2, 2), (1, 2, 2), (3, 3, 3))
MOST_ELEMENTS, MOST_PRODUCTS = 1 << 28, 1 << 38


def made(shape: tuple[int, ...], dtype: torch.dtype, last: bool = False) -> torch.Tensor:
    layout = torch.channels_last_3d if last else torch.contiguous_format
    return torch.empty(shape, dtype=dtype, device="cuda", memory_format=layout)


def convolution(draw: random.Random, transposed: bool) -> bool:
    """Call one that is drawn; whether it was of a size to be measured."""
    dtype, tf32 = draw.choice(PRECISIONS)
    torch.backends.cudnn.allow_tf32 = tf32
    batch, sides, window, stride = draw.choice(BATCHES), draw.choice(SIDES), draw.choice(WINDOWS), draw.choice(STRIDES)
    into, out, groups = draw.choice(CHANNELS), draw.choice(CHANNELS[3:]), draw.choice((1, 1, 1, 1, 1, 1, 2, 4, 8))
    if into % groups or out % groups:
        into, out = groups * max(1, into // groups), groups * max(1, out // groups)
    padding = tuple(width // 2 for width in window) if draw.random() < 0.6 else (0, 0, 0)
    more = tuple(step - 1 for step in stride) if transposed and draw.random() < 0.3 else (0, 0, 0)
    axes = list(zip(sides, window, stride, padding, more, strict=True))
    outside = [(x - 1) * s - 2 * p + w + m if transposed else (x + 2 * p - w) // s + 1 for x, w, s, p, m in axes]
    places = math.prod(sides if transposed else outside)
    if min(outside) < 1 or batch * max(into * math.prod(sides), out * math.prod(outside)) > MOST_ELEMENTS:
        return False
    if batch * places * into * out // groups * math.prod(window) > MOST_PRODUCTS:
        return False
    last = draw.random() < 0.2
    x, bias = made((batch, into, *sides), dtype, last), made((out,), dtype) if draw.random() < 0.5 else None
    if transposed:
        weight = made((into, out // groups, *window), dtype, last)
        y = F.conv_transpose3d(x, weight, bias, stride, padding, more, groups)
    else:
        y = F.conv3d(x, made((out, into // groups, *window), dtype, last), bias, stride, padding, 1, groups)
    if draw.random() < 0.3:
        behind(draw, y)
    return True


def behind(draw: random.Random, y: torch.Tensor) -> None:
    """What models do with a convolution's result."""
    channels = y.shape[1]
    weight, bias = (made((channels,), y.dtype) for _ in range(2))
    chosen = draw.randrange(9)
    if chosen == 0:
        mean, variance = (made((channels,), torch.float32) for _ in range(2))
        F.batch_norm(y, mean, variance, weight.float(), bias.float(), training=draw.random() < 0.5)
    elif chosen == 1:
        F.group_norm(y, math.gcd(channels, draw.choice((1, 4, 8, 16))), weight, bias)
    elif chosen == 2:
        F.layer_norm(y, y.shape[-1:])
    elif chosen == 3 and min(y.shape[2:]) > 3:
        F.max_pool3d(y, draw.choice((2, 3)))
    elif chosen == 4 and min(y.shape[2:]) > 3:
        F.avg_pool3d(y, draw.choice((2, 4)))
    elif chosen == 5:
        torch.softmax(y, 1)
    elif chosen == 6:
        torch.logsumexp(y, 1, keepdim=True)
    elif chosen == 7:
        y.mean(dim=(2, 3, 4), keepdim=True)
    else:
        torch.max(y, 1, keepdim=True)


WANTED = ((False, 450), (True, 450))
"""Transposed, and how many."""


def custom_kernel(data: object) -> None:
    draw = random.Random(math.e)
    for transposed, count in WANTED:
        while count:
            count -= convolution(draw, transposed)
