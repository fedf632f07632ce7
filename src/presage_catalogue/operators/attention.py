"""Attention as torch's fused operators do it, and recurrent layers as cuDNN does them."""

import math
import random

import torch
from torch import nn

HEADS = ((32, 4), (64, 4), (64, 8), (64, 12), (64, 16), (80, 16), (96, 16), (128, 8), (128, 16), (128, 32), (128, 40))
"""The width of a head, and how many."""
LENGTHS = (16, 49, 64, 128, 197, 256, 512, 1000, 1024, 2048, 4096, 8192)
MOST_ELEMENTS, MOST_SCORES = 1 << 26, 1 << 31


def made(*sizes: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.empty(sizes, dtype=dtype, device="cuda")


def heads(draw: random.Random, dtype: torch.dtype) -> tuple[list[torch.Tensor], bool]:
    """Queries, keys and values, either each on its own or parts of one projection; and whether they look back only."""
    while True:
        (width, count), length = draw.choice(HEADS), draw.choice(LENGTHS)
        batch = draw.choice((1, 2, 4, 8, 16, 32, 64))
        asked = 1 if draw.random() < 0.12 else length
        if batch * count * length * width > MOST_ELEMENTS or batch * count * length * asked > MOST_SCORES:
            continue
        if draw.random() < 0.5 or asked != length:
            lengths = (asked, length, length)
            return [made(batch, count, each, width, dtype=dtype) for each in lengths], draw.random() < 0.5 and asked > 1
        parts = made(batch, length, 3, count, width, dtype=dtype).unbind(2)
        return [part.transpose(1, 2) for part in parts], draw.random() < 0.5


def fused(draw: random.Random) -> None:
    for number in range(420):
        kind = number % 3
        half = draw.choice((torch.float16, torch.bfloat16))
        (q, k, v), causal = heads(draw, half if kind < 2 or draw.random() < 0.5 else torch.float32)
        if kind == 0:
            torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, 0.0, causal)
        elif kind == 1:
            torch.ops.aten._scaled_dot_product_cudnn_attention(q, k, v, None, False, 0.0, causal)
        else:
            masked = draw.random() < 0.3 and not causal and k.shape[2] % 8 == 0
            bias = made(1, 1, q.shape[2], k.shape[2], dtype=q.dtype).expand(*q.shape[:3], -1) if masked else None
            torch.ops.aten._scaled_dot_product_efficient_attention(q, k, v, bias, False, 0.0, causal)


def recurrent(draw: random.Random) -> None:
    for _ in range(90):
        kind = draw.choice((nn.LSTM, nn.GRU, nn.RNN))
        into, hidden = draw.choice((64, 128, 256, 512)), draw.choice((64, 128, 256, 512, 1024))
        layer = kind(into, hidden, draw.choice((1, 2, 3, 6)), bidirectional=draw.random() < 0.3)
        x = made(draw.choice((1, 16, 64, 128, 512)), draw.choice((1, 8, 10, 32, 64)), into, dtype=torch.float32)
        layer.to("cuda")(x)


def custom_kernel(data: object) -> None:
    draw = random.Random(math.pi)
    fused(draw)
    recurrent(draw)
