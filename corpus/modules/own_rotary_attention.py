"""Rotary embedding and causal attention together, in float16."""

import torch
import torch.nn.functional as F


def rotate(x, cos, sin):
    left, right = x.float().chunk(2, dim=-1)
    return torch.cat((left * cos - right * sin, right * cos + left * sin), dim=-1).to(x.dtype)


def reference(q, k, v, cos, sin):
    return F.scaled_dot_product_attention(rotate(q, cos, sin), rotate(k, cos, sin), v, is_causal=True)


def inputs(batch, heads, length, width):
    q, k, v = (torch.randn(batch, heads, length, width).half() for _ in range(3))
    frequency = 10000.0 ** (-torch.arange(0, width, 2).float() / width)
    angle = torch.arange(length).float()[:, None] * frequency[None, :]
    return q, k, v, angle.cos(), angle.sin()


cases = [{"batch": 4, "heads": 16, "length": 2048, "width": 64}]
