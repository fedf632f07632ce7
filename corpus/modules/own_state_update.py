"""The state of linear attention: it decays, and four outer products of keys and values are added."""

import torch


def reference(state, decay, k, v):
    return state * decay[:, :, None, None] + torch.einsum("bhtk,bhtv->bhkv", k, v)


def inputs(batch, heads, steps, width):
    state = torch.randn(batch, heads, width, width)
    k, v = torch.randn(batch, heads, steps, width), torch.randn(batch, heads, steps, width)
    return state, torch.rand(batch, heads), k, v


cases = [{"batch": 64, "heads": 16, "steps": 4, "width": 128}]
