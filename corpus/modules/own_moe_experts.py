"""Two experts of eight for each token: gather, matrix product, weighted scatter; in float16."""

import torch


def reference(x, weights, experts, matrices):
    out = torch.zeros_like(x)
    for number in range(matrices.shape[0]):
        share = (weights * (experts == number)).sum(dim=1, keepdim=True)
        out += share * (x @ matrices[number])
    return out


def inputs(tokens, width, count):
    x = torch.randn(tokens, width).half()
    experts = torch.rand(tokens, count).topk(2, dim=1).indices
    weights = torch.rand(tokens, 2) + 0.1
    weights = (weights / weights.sum(dim=1, keepdim=True)).half()
    return x, weights, experts, (torch.randn(count, width, width) / width**0.5).half()


cases = [{"tokens": 8192, "width": 1024, "count": 8}]
