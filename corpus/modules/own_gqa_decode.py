"""One decoding step of grouped-query attention over a cache whose sequences have different lengths, in bfloat16."""

import math

import torch


def reference(q, keys, values, lengths):
    batch, heads, width = q.shape
    kv_heads, room = keys.shape[1], keys.shape[2]
    grouped = q.view(batch, kv_heads, heads // kv_heads, width)
    scores = torch.matmul(grouped, keys.transpose(-1, -2)).float() / math.sqrt(width)
    past = torch.arange(room, device=q.device)[None, :] >= lengths[:, None]
    scores = scores.masked_fill(past[:, None, None, :], float("-inf"))
    weights = torch.softmax(scores, dim=-1).to(q.dtype)
    return torch.matmul(weights, values).reshape(batch, heads, width)


def inputs(batch, heads, kv_heads, room, width):
    q = torch.randn(batch, heads, width, dtype=torch.bfloat16)
    keys = torch.randn(batch, kv_heads, room, width, dtype=torch.bfloat16)
    values = torch.randn(batch, kv_heads, room, width, dtype=torch.bfloat16)
    return q, keys, values, torch.randint(room // 2, room + 1, (batch,))


cases = [{"batch": 32, "heads": 32, "kv_heads": 8, "room": 4096, "width": 128}]
