"""Routes tokens to the eight likeliest of 64 experts: weights that sum to one, and the experts' numbers."""

import torch


def reference(logits, k):
    probabilities = torch.softmax(logits, dim=-1)
    weights, experts = torch.topk(probabilities, k, dim=-1)
    return weights / weights.sum(dim=-1, keepdim=True), experts


def inputs(tokens, experts, k):
    ranks = torch.rand(tokens, experts).argsort(dim=1)
    return 80 + 0.25 * ranks + 0.1 * torch.rand(tokens, experts), k


cases = [{"tokens": 65536, "experts": 64, "k": 8}]
