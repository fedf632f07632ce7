"""Matrix products: projections of transformers, batches of small products, all layouts and precisions."""

import math
import random

import torch

PRECISIONS = ((torch.float32, False), (torch.float32, True), (torch.float16, False), (torch.bfloat16, False))
"""A type, and whether TF32 may stand for it."""
WIDTHS = (64, 128, 192, 256, 320, 384, 512, 640, 768, 1024, 1280, 1600, 2048, 2560, 3072, 4096, 5120, 6144, 8192)
TOKENS = (1, 2, 4, 8, 16, 32, 64, 100, 128, 197, 256, 400, 512, 1000, 1024, 2048, 4096, 8192, 16384, 32768)
SIZES = (1, 3, 7, 8, 16, 17, 31, 32, 48, 64, 96, 100, 128, 200, 205, 256, 384, 512, 768, 1000, 1024, 1536, 2048, 2949,
         3000, 4096, 5000, 8192, 16384, 32768, 65536, 131072)  # fmt: skip
MOST_ELEMENTS, MOST_PRODUCTS = 1 << 27, 1 << 37


def made(shape: tuple[int, ...], dtype: torch.dtype, transposed: bool = False) -> torch.Tensor:
    if transposed:
        return torch.empty((*shape[:-2], shape[-1], shape[-2]), dtype=dtype, device="cuda").transpose(-1, -2)
    return torch.empty(shape, dtype=dtype, device="cuda")


def fits(batch: int, m: int, k: int, n: int) -> bool:
    return batch * max(m * k, k * n, m * n) <= MOST_ELEMENTS and batch * m * k * n <= MOST_PRODUCTS


def precision(draw: random.Random) -> torch.dtype:
    dtype, tf32 = draw.choice(PRECISIONS)
    torch.backends.cuda.matmul.allow_tf32 = tf32
    return dtype


def linear_layers(draw: random.Random, count: int) -> None:
    """With and without bias: the weight lies transposed."""
    while count:
        dtype, width, tokens = precision(draw), draw.choice(WIDTHS), draw.choice(TOKENS)
        out = draw.choice((width, 3 * width, 4 * width, width // 4, 10, 1000, 32000, 50257))
        into, out = (width, out) if draw.random() < 0.7 else (out, width)
        if not fits(1, tokens, into, out):
            continue
        bias = made((out,), dtype) if draw.random() < 0.7 else None
        torch.nn.functional.linear(made((tokens, into), dtype), made((out, into), dtype), bias)
        count -= 1


def products(draw: random.Random, count: int) -> None:
    while count:
        dtype, (m, k, n) = precision(draw), (draw.choice(SIZES) for _ in range(3))
        if draw.random() < 0.2:
            m = k = n = draw.choice(SIZES)
        if not fits(1, m, k, n):
            continue
        a, b = made((m, k), dtype, draw.random() < 0.3), made((k, n), dtype, draw.random() < 0.3)
        if draw.random() < 0.8:
            torch.mm(a, b)
        else:
            torch.addmm(made((m, n), dtype) if draw.random() < 0.5 else made((n,), dtype), a, b)
        count -= 1


def batches(draw: random.Random, count: int) -> None:
    """Scores and values of attention, and others."""
    while count:
        dtype, batch = precision(draw), draw.choice((1, 2, 4, 8, 12, 16, 32, 64, 96, 128, 256, 512, 1024))
        if draw.random() < 0.6:
            tokens, head = draw.choice((1, 32, 49, 64, 128, 197, 256, 512, 1024, 2048)), draw.choice((32, 64, 80, 128))
            m, k, n = draw.choice(((tokens, head, tokens), (tokens, tokens, head), (1, head, tokens)))
        else:
            m, k, n = (draw.choice(SIZES[3:26]) for _ in range(3))
        if not fits(batch, m, k, n):
            continue
        a, b = made((batch, m, k), dtype), made((batch, k, n), dtype, draw.random() < 0.5)
        if draw.random() < 0.85:
            torch.bmm(a, b)
        else:
            torch.baddbmm(made((batch, m, n), dtype), a, b, beta=0.5)
        count -= 1


def vectors(draw: random.Random, count: int) -> None:
    while count:
        dtype, m, n = precision(draw), draw.choice(SIZES), draw.choice(SIZES)
        if m * n > MOST_ELEMENTS:
            continue
        torch.mv(made((m, n), dtype, draw.random() < 0.3), made((n,), dtype))
        if draw.random() < 0.4:
            torch.dot(made((m * 64,), dtype), made((m * 64,), dtype))
        count -= 1


def custom_kernel(data: object) -> None:
    draw = random.Random(math.pi)
    linear_layers(draw, 900)
    products(draw, 900)
    batches(draw, 450)
    vectors(draw, 90)
