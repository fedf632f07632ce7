"""A new cache: the old one with the keys and values of 16 new positions written into each sequence."""

import torch


def reference(cache_k, cache_v, k, v, positions):
    index = positions[:, None, :, None].expand(k.shape)
    return cache_k.scatter(2, index, k), cache_v.scatter(2, index, v)


def inputs(batch, heads, room, new, width):
    cache_k = torch.randn(batch, heads, room, width, dtype=torch.bfloat16)
    cache_v = torch.randn(batch, heads, room, width, dtype=torch.bfloat16)
    k = torch.randn(batch, heads, new, width, dtype=torch.bfloat16)
    v = torch.randn(batch, heads, new, width, dtype=torch.bfloat16)
    start = torch.randint(0, room - new, (batch, 1))
    return cache_k, cache_v, k, v, start + torch.arange(new)


cases = [{"batch": 16, "heads": 8, "room": 4096, "new": 16, "width": 128}]
