"""Normalisations, softmax, reductions, scans, sorting and pooling, over rows, columns and planes."""

import math
import random
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.nn import functional as F

DTYPES = (torch.float32, torch.float32, torch.float16, torch.bfloat16)
WIDTHS = (1, 10, 32, 49, 64, 100, 128, 197, 256, 384, 500, 512, 768, 1000, 1024, 1280, 2048, 3072, 4096, 5120, 8192,
          16384, 32000, 50257, 131072)  # fmt: skip
ROWS = (1, 2, 8, 16, 32, 64, 128, 196, 512, 1024, 2048, 4096, 8192, 16384, 65536)
CHANNELS = (3, 8, 16, 32, 48, 64, 96, 128, 192, 256, 320, 512, 768, 1024, 2048)
SIDES = (1, 4, 7, 8, 14, 16, 28, 32, 56, 64, 112, 128, 224, 256)
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128)
MOST = 1 << 27
REDUCTIONS: tuple[Callable[[torch.Tensor, int], Any], ...] = (
    *(torch.sum, torch.mean, torch.amax, torch.amin, torch.argmax, torch.argmin, torch.prod, torch.std, torch.logsumexp),
    lambda x, dim: torch.max(x, dim),
    lambda x, dim: torch.min(x, dim),
    lambda x, dim: torch.var(x, dim, unbiased=False),
    lambda x, dim: torch.linalg.vector_norm(x, 2, dim),
    lambda x, dim: torch.linalg.vector_norm(x, 1, dim, keepdim=True),
    lambda x, dim: torch.sum(x, dim, keepdim=True),
    lambda x, dim: torch.mean(x, dim, keepdim=True),
    lambda x, dim: torch.sum(x, dim, dtype=torch.float32),
    lambda x, dim: torch.all(x > 0, dim),
)
WHOLE: tuple[Callable[[torch.Tensor], Any], ...] = (
    torch.sum, torch.mean, torch.max, torch.min, torch.std, torch.argmax, torch.linalg.vector_norm,
    torch.any,
)  # fmt: skip
SCANS: tuple[Callable[[torch.Tensor, int], Any], ...] = (torch.cumsum, torch.cumprod, torch.logcumsumexp)


def made(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, device="cuda")


def matrices(draw: random.Random, count: int, most: int = MOST) -> Iterator[torch.Tensor]:
    """Of two, three or four dimensions, some of them transposed."""
    while count:
        dtype, rows, width = draw.choice(DTYPES), draw.choice(ROWS), draw.choice(WIDTHS)
        if rows * width > most:
            continue
        shape: tuple[int, ...] = (rows, width)
        if rows % 8 == 0 and draw.random() < 0.5:
            shape = (8, rows // 8, width) if draw.random() < 0.6 else (2, 4, rows // 8, width)
        x = made(shape, dtype)
        yield x.transpose(-1, -2) if draw.random() < 0.12 else x
        count -= 1


def planes(draw: random.Random, count: int, most: int = MOST) -> Iterator[torch.Tensor]:
    """Images: batch, channels, height, width; some with the channels last."""
    while count:
        shape = (draw.choice(BATCHES), draw.choice(CHANNELS), *(draw.choice(SIDES),) * 2)
        if math.prod(shape) > most:
            continue
        x = made(shape, draw.choice(DTYPES))
        yield x.to(memory_format=torch.channels_last) if draw.random() < 0.15 else x
        count -= 1


def normalisations(draw: random.Random) -> None:
    for x in matrices(draw, 320):
        width = x.shape[-1]
        weight, bias = made((width,), x.dtype), made((width,), x.dtype)
        F.layer_norm(x, (width,), *((weight, bias) if draw.random() < 0.85 else ()))
        if draw.random() < 0.3:  # by hand, as models do
            x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight
    for x in planes(draw, 260):
        channels = x.shape[1]
        weight, bias, mean, var = (made((channels,), torch.float32) for _ in range(4))
        training = draw.random() < 0.5 and x.numel() > channels
        half = x.dtype is not torch.float32
        if half and draw.random() < 0.5:
            weight, bias, mean, var = (each.to(x.dtype) for each in (weight, bias, mean, var))
        if draw.random() < 0.5:
            torch.ops.aten.native_batch_norm(x, weight, bias, mean, var, training, 0.1, 1e-5)
        else:
            F.batch_norm(x, mean, var, weight, bias, training)
        if weight.dtype is torch.float32 and draw.random() < 0.7:
            torch.ops.aten.cudnn_batch_norm(x, weight, bias, mean, var, training, 0.1, 1e-5)
    for x in planes(draw, 150):
        channels = x.shape[1]
        weight, bias = (made((channels,), x.dtype) for _ in range(2))
        groups = draw.choice([each for each in (1, 2, 4, 8, 16, 32, channels) if channels % each == 0])
        F.group_norm(x, groups, weight, bias)


def softmaxes(draw: random.Random) -> None:
    for x in matrices(draw, 260):
        dim = -1 if draw.random() < 0.8 else draw.randrange(x.dim())
        function = draw.choice((torch.softmax, torch.softmax, torch.log_softmax))
        function(x, dim)
    for x in planes(draw, 60):
        torch.softmax(x, 1)


def reductions(draw: random.Random) -> None:
    for x in (*matrices(draw, 420), *planes(draw, 150)):
        dim = -1 if draw.random() < 0.5 else draw.randrange(x.dim())
        draw.choice(REDUCTIONS)(x, dim)
        if draw.random() < 0.2:
            draw.choice(WHOLE)(x)
        if x.dim() == 4 and draw.random() < 0.5:
            x.mean((2, 3), keepdim=draw.random() < 0.5)


def scans(draw: random.Random) -> None:
    for x in matrices(draw, 130, 1 << 25):
        draw.choice(SCANS)(x, -1 if draw.random() < 0.8 else 0)
    for x in matrices(draw, 130, 1 << 24):
        if draw.random() < 0.5:
            torch.sort(x, dim=-1, descending=draw.random() < 0.5)
        else:
            torch.topk(x, min(x.shape[-1], draw.choice((1, 2, 5, 8, 50, 256))), dim=-1)


def pools(draw: random.Random) -> None:
    for x in planes(draw, 230, 1 << 26):
        side = x.shape[-1]
        window = min(side, draw.choice((2, 2, 3, 3, 5, 7, 11)))
        stride, padding = draw.choice((1, 2, window)), draw.choice((0, window // 2))
        draw.choice((F.max_pool2d, F.avg_pool2d))(x, window, stride, padding)
        if draw.random() < 0.35:
            F.adaptive_avg_pool2d(x, draw.choice((1, min(side, 7))))
    for _ in range(70):
        batch, channels, side = draw.choice(BATCHES[:5]), draw.choice(CHANNELS[:10]), draw.choice((8, 16, 32, 64))
        x, window = made((batch, channels, *(side,) * 3), draw.choice(DTYPES)), draw.choice((2, 3))
        if x.numel() <= 1 << 26:
            draw.choice((F.max_pool3d, F.avg_pool3d))(x, window, draw.choice((1, window)))
    for _ in range(60):
        x = made((draw.choice(BATCHES), draw.choice(CHANNELS), draw.choice((128, 1024, 4096))), draw.choice(DTYPES))
        draw.choice((F.max_pool1d, F.avg_pool1d))(x, draw.choice((2, 4, 8)), draw.choice((1, 2)), 1)


def custom_kernel(data: object) -> None:
    draw = random.Random(math.pi)
    normalisations(draw)
    softmaxes(draw)
    reductions(draw)
    scans(draw)
    pools(draw)
