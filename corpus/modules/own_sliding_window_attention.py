"""Causal attention in which each position sees itself and the 511 before it, in float16."""

import math

import torch


def reference(q, k, v, window):
    length = q.shape[2]
    at = torch.arange(length, device=q.device)
    distance = at[:, None] - at[None, :]
    hidden = (distance < 0) | (distance >= window)
    scores = torch.matmul(q, k.transpose(-1, -2)).float() / math.sqrt(q.shape[-1])
    weights = torch.softmax(scores.masked_fill(hidden, float("-inf")), dim=-1)
    return torch.matmul(weights.to(v.dtype), v)


def inputs(batch, heads, length, width, window):
    q = torch.randn(batch, heads, length, width).half()
    k = torch.randn(batch, heads, length, width).half()
    return q, k, torch.randn(batch, heads, length, width).half(), window


cases = [{"batch": 1, "heads": 8, "length": 4096, "width": 64, "window": 512}]
