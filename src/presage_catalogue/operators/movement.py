"""Operators that put elements elsewhere: concatenation, indexing, padding, resampling; and losses, which look up."""

import math
import random

import torch
from torch.nn import functional as F

DTYPES = (torch.float32, torch.float32, torch.float16, torch.bfloat16)
WIDTHS = (1, 16, 32, 64, 100, 128, 256, 512, 768, 1024, 2048, 4096)
ROWS = (1, 4, 16, 64, 128, 500, 1024, 4096, 8192, 32768, 100000)
CHANNELS = (3, 8, 16, 32, 64, 96, 128, 256, 512)
SIDES = (4, 7, 8, 14, 16, 28, 32, 56, 64, 112, 128, 224)
MOST = 1 << 26


def made(*sizes: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.empty(sizes, dtype=dtype, device="cuda")


def indices(*sizes: int) -> torch.Tensor:
    return torch.empty(sizes, dtype=torch.int64, device="cuda")


def matrix(draw: random.Random) -> torch.Tensor:
    while True:
        rows, width = draw.choice(ROWS), draw.choice(WIDTHS)
        if rows * width <= MOST:
            return made(rows, width, dtype=draw.choice(DTYPES))


def image(draw: random.Random, most: int = MOST) -> torch.Tensor:
    while True:
        sizes = (draw.choice((1, 2, 4, 8, 16, 32, 64)), draw.choice(CHANNELS), *(draw.choice(SIDES),) * 2)
        if math.prod(sizes) <= most:
            x = made(*sizes, dtype=draw.choice(DTYPES))
            return x.to(memory_format=torch.channels_last) if draw.random() < 0.1 else x


def joins(draw: random.Random) -> None:
    for _ in range(220):
        x, parts = image(draw, MOST // 8), draw.choice((2, 2, 3, 4, 6, 8))
        others = [made(x.shape[0], draw.choice(CHANNELS[:6]), *x.shape[2:], dtype=x.dtype) for _ in range(parts - 1)]
        torch.cat([x, *others], 1)
    for _ in range(120):
        x, parts = matrix(draw), draw.choice((2, 2, 3, 4))
        if x.numel() * parts <= MOST:
            draw.choice((torch.cat, torch.stack))([x, *(torch.empty_like(x) for _ in range(parts - 1))], draw.choice((0, 1)))


def lookups(draw: random.Random) -> None:
    for _ in range(140):
        x, tokens = matrix(draw), draw.choice((1, 16, 128, 512, 2048, 8192, 32768))
        if tokens * x.shape[1] > MOST:
            continue
        kind = draw.randrange(4)
        if kind == 0:
            F.embedding(indices(tokens) if tokens < 64 else indices(8, tokens // 8), x)
        elif kind == 1:
            torch.index_select(x, 0, indices(tokens))
        elif kind == 2:
            x[indices(tokens)]
        else:
            torch.index_select(x, 1, indices(min(tokens, 512)))
    for _ in range(150):
        x = matrix(draw)
        dim, rows = draw.choice((0, 1)), max(1, x.shape[0] // draw.choice((1, 2, 4)))
        index = indices(rows, x.shape[1])
        kind = draw.randrange(5)
        if kind < 2:
            torch.gather(x, dim, index)
        elif kind == 2:
            x.scatter(dim, index, torch.empty(index.shape, dtype=x.dtype, device="cuda"))
        elif kind == 3:
            x.scatter_add_(dim, index, torch.empty(index.shape, dtype=x.dtype, device="cuda"))
        else:
            x.scatter_(dim, index[:, :1], 1.0)
    for _ in range(90):
        x = matrix(draw)
        tokens = draw.choice((16, 512, 4096))
        values = made(tokens, x.shape[1], dtype=x.dtype)
        if draw.random() < 0.5:
            x.index_add_(0, indices(tokens), values)
        else:
            x.index_put_((indices(tokens),), values, accumulate=draw.random() < 0.5)


def rearrangements(draw: random.Random) -> None:
    for _ in range(200):
        x = image(draw, MOST // 8)
        side, kind = x.shape[-1], draw.randrange(9)
        if kind == 0:
            torch.roll(x, (1, side // 2), (2, 3))
        elif kind == 1:
            torch.flip(x, (draw.choice((1, 2, 3)),))
        elif kind == 2:
            F.pad(x, (1, 1, 1, 1))
        elif kind == 3:
            F.pad(x, (1, 2, 1, 2), mode=draw.choice(("reflect", "replicate")))
        elif kind == 4:
            F.interpolate(x, scale_factor=2, mode="nearest")
        elif kind == 5:
            F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=draw.random() < 0.5)
        elif kind == 6:
            F.unfold(x, 3, padding=1)
        elif kind == 7:
            x.repeat(1, 2, 1, 1)
        else:
            draw.choice((torch.tril, torch.triu))(x)
    for _ in range(60):
        x = image(draw, MOST // 4)
        if x.shape[1] % 4 == 0:
            F.pixel_shuffle(x, 2)


def losses(draw: random.Random) -> None:
    for _ in range(170):
        x = matrix(draw)
        target = torch.empty_like(x)
        kind = draw.randrange(7)
        if kind < 2:
            F.cross_entropy(x, indices(x.shape[0]), reduction=draw.choice(("mean", "mean", "none")))
        elif kind == 2:
            F.mse_loss(x, target)
        elif kind == 3:
            F.smooth_l1_loss(x, target)
        elif kind == 4:
            F.kl_div(x, target, reduction="batchmean")
        elif kind == 5:
            F.binary_cross_entropy_with_logits(x, target)
        else:
            F.cosine_similarity(x, target, dim=1)


def custom_kernel(data: object) -> None:
    draw = random.Random(math.pi)
    joins(draw)
    lookups(draw)
    rearrangements(draw)
    losses(draw)
