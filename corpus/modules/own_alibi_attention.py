"""Causal attention with ALiBi: a slope for each head times the distance, in place of positions; in float16."""

import math

import torch


def reference(q, k, v, slopes):
    length = q.shape[2]
    at = torch.arange(length, device=q.device)
    distance = (at[None, :] - at[:, None]).float()
    scores = torch.matmul(q, k.transpose(-1, -2)).float() / math.sqrt(q.shape[-1])
    scores = scores + slopes[None, :, None, None] * distance
    scores = scores.masked_fill(distance > 0, float("-inf"))
    return torch.matmul(torch.softmax(scores, dim=-1).to(v.dtype), v)


def inputs(batch, heads, length, width):
    q, k, v = (torch.randn(batch, heads, length, width).half() for _ in range(3))
    return q, k, v, 2.0 ** (-8.0 * torch.arange(1, heads + 1) / heads)


cases = [{"batch": 2, "heads": 16, "length": 2048, "width": 64}]
