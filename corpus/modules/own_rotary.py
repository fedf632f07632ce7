"""Rotary position embedding of queries and keys, halves rotated as in Llama."""

import torch


def rotate_half(x):
    left, right = x.chunk(2, dim=-1)
    return torch.cat((-right, left), dim=-1)


def reference(q, k, cos, sin):
    cos, sin = cos[None, None], sin[None, None]
    return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin


def inputs(batch, heads, kv_heads, length, width):
    q = torch.randn(batch, heads, length, width)
    k = torch.randn(batch, kv_heads, length, width)
    frequency = 10000.0 ** (-torch.arange(0, width, 2).float() / width)
    angle = torch.arange(length).float()[:, None] * frequency[None, :]
    angle = torch.cat((angle, angle), dim=-1)
    return q, k, angle.cos(), angle.sin()


cases = [{"batch": 4, "heads": 32, "kv_heads": 8, "length": 2048, "width": 128}]
