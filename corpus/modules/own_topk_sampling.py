"""Samples a word from the 50 likeliest at a temperature, by a given uniform number; gives its probability too."""

import torch


def reference(logits, uniform, k, temperature):
    values, words = torch.sort(logits, dim=-1, descending=True)
    values, words = values[:, :k] / temperature, words[:, :k]
    probabilities = torch.softmax(values, dim=-1)
    below = (torch.cumsum(probabilities, dim=-1) <= uniform[:, None]).sum(dim=-1, keepdim=True).clamp(max=k - 1)
    return words.gather(1, below).squeeze(1), probabilities.gather(1, below).squeeze(1)


def inputs(rows, words, k, temperature):
    return 3 * torch.randn(rows, words), torch.rand(rows), k, temperature


cases = [{"rows": 256, "words": 50304, "k": 50, "temperature": 0.8}]
