"""Convolutions of one to three dimensions: dense, pointwise, grouped, depthwise, dilated and transposed."""

import math
import random

import torch
from torch.nn import functional as F

PRECISIONS = ((torch.float32, True), (torch.float32, True), (torch.float32, False), (torch.float16, True),
              (torch.bfloat16, True))  # fmt: skip
"""A type, and whether TF32 may stand for it, as it may by default."""
BATCHES = (1, 1, 2, 4, 8, 10, 16, 16, 32, 64, 128)
CHANNELS = (1, 3, 3, 6, 8, 12, 16, 24, 32, 32, 48, 64, 64, 96, 112, 128, 128, 160, 192, 256, 256, 320, 384, 480, 512,
            672, 768, 960, 1024, 1280, 2048)  # fmt: skip
SIDES = {
    1: (16, 64, 128, 256, 512, 1000, 1024, 4096, 16000, 65536, 131072),
    2: (1, 4, 7, 8, 14, 16, 28, 32, 32, 56, 64, 112, 128, 224, 256, 512),
    3: (4, 8, 10, 16, 16, 24, 32, 48, 64),
}
CONVOLUTIONS = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}
LAST = {2: torch.channels_last, 3: torch.channels_last_3d}
MOST_ELEMENTS, MOST_PRODUCTS = 1 << 26, 1 << 37


def made(shape: tuple[int, ...], dtype: torch.dtype, last: bool = False) -> torch.Tensor:
    if last:
        return torch.empty(shape, dtype=dtype, device="cuda", memory_format=LAST[len(shape) - 2])
    return torch.empty(shape, dtype=dtype, device="cuda")


def groups_of(draw: random.Random, kind: str, into: int, out: int) -> tuple[int, int, int]:
    """Channels in and out, and groups, of a convolution of this kind."""
    if kind == "depthwise":
        return into, into * draw.choice((1, 1, 1, 2)), into
    if kind == "grouped":
        groups = draw.choice((2, 3, 4, 8, 16, 32))
        return -(-into // groups) * groups, -(-out // groups) * groups, groups
    return into, out, 1


def convolution(draw: random.Random, dimensions: int, kind: str) -> bool:
    """Call one that is drawn; whether it was of a size to be measured."""
    dtype, tf32 = draw.choice(PRECISIONS)
    torch.backends.cudnn.allow_tf32 = tf32
    batch, side = draw.choice(BATCHES), draw.choice(SIDES[dimensions])
    into, out, groups = groups_of(draw, kind, draw.choice(CHANNELS), draw.choice(CHANNELS[4:]))
    width = 1 if kind == "pointwise" else draw.choice((2, 3, 3, 3, 3, 4, 5, 5, 7, 11))
    stride = draw.choice((1, 1, 1, 2, 2, 3) if kind != "dilated" else (1, 1, 2))
    dilation = draw.choice((2, 3, 4)) if kind == "dilated" else 1
    padding = draw.choice((0, dilation * (width // 2), dilation * (width // 2)))
    sides = (side,) * dimensions if draw.random() < 0.8 else (side, *(max(1, side // 2),) * (dimensions - 1))
    if min(sides) + 2 * padding < dilation * (width - 1) + 1:
        return False
    transposed = kind == "transposed"
    outside = [((x - 1) * stride - 2 * padding + dilation * (width - 1) + 1) if transposed
               else (x + 2 * padding - dilation * (width - 1) - 1) // stride + 1 for x in sides]  # fmt: skip
    if min(outside) < 1:
        return False
    places = math.prod(sides if transposed else outside)
    elements = batch * max(into * math.prod(sides), out * math.prod(outside))
    if elements > MOST_ELEMENTS or batch * places * into * out // groups * width**dimensions > MOST_PRODUCTS:
        return False
    last = dimensions > 1 and draw.random() < 0.25
    x = made((batch, into, *sides), dtype, last)
    bias = made((out,), dtype) if draw.random() < 0.5 else None
    if transposed:
        weight = made((into, out // groups, *(width,) * dimensions), dtype, last)
        TRANSPOSED[dimensions](x, weight, bias, stride=stride, padding=padding, groups=groups)
    else:
        weight = made((out, into // groups, *(width,) * dimensions), dtype, last)
        CONVOLUTIONS[dimensions](x, weight, bias, stride, padding, dilation, groups)
    return True


WANTED = (
    *((2, "dense", 550), (2, "pointwise", 300), (2, "depthwise", 220), (2, "grouped", 100), (2, "dilated", 80)),
    *((2, "transposed", 170), (1, "dense", 130), (1, "pointwise", 40), (1, "depthwise", 60), (1, "dilated", 30)),
    *((1, "transposed", 70), (3, "dense", 150), (3, "pointwise", 30), (3, "depthwise", 30), (3, "transposed", 90)),
)
"""Dimensions, kind and how many."""


def custom_kernel(data: object) -> None:
    draw = random.Random(math.pi)
    for dimensions, kind, count in WANTED:
        while count:
            count -= convolution(draw, dimensions, kind)
