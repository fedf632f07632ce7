"""Routes tokens to the eight likeliest of 64 experts: weights that sum to one, and the experts' numbers."""

import torch


def reference(logits, k):
    probabilities = torch.softmax(logits, dim=-1)
    weights, experts = torch.topk(probabilities, k, dim=-1)
    return weights / weights.sum(dim=-1, keepdim=True), experts


def inputs(tokens, experts, k):
    return 40 * torch.randn(tokens, experts), k


cases = [{"tokens": 65536, "experts": 64, "k": 8}]
