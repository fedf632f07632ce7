"""Causal grouped-query attention of a prompt, in float16."""

import math

import torch


def reference(q, k, v):
    repeat = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(repeat, dim=1), v.repeat_interleave(repeat, dim=1)
    scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(q.shape[-1])
    length = q.shape[2]
    later = torch.ones(length, length, dtype=torch.bool, device=q.device).triu(1)
    weights = torch.softmax(scores.masked_fill(later, float("-inf")).float(), dim=-1).to(q.dtype)
    return torch.matmul(weights, v)


def inputs(batch, heads, kv_heads, length, width):
    q = torch.randn(batch, heads, length, width).half()
    k = torch.randn(batch, kv_heads, length, width).half()
    v = torch.randn(batch, kv_heads, length, width).half()
    return q, k, v


cases = [{"batch": 2, "heads": 16, "kv_heads": 4, "length": 2048, "width": 128}]
