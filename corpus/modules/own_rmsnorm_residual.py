"""Adds a layer's output to the residual stream and normalises the sum by its root mean square, in bfloat16."""

import torch


def reference(x, residual, weight):
    total = x.float() + residual.float()
    scale = torch.rsqrt(total.pow(2).mean(-1, keepdim=True) + 1e-6)
    return (total * scale * weight.float()).to(x.dtype), total.to(x.dtype)


def inputs(tokens, width):
    x = torch.randn(tokens, width, dtype=torch.bfloat16)
    residual = torch.randn(tokens, width, dtype=torch.bfloat16)
    return x, residual, (1 + 0.1 * torch.randn(width)).to(torch.bfloat16)


cases = [{"tokens": 8192, "width": 4096}, {"tokens": 1000, "width": 5120}]
