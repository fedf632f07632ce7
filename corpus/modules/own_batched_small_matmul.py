"""Very many products of 16×16 matrices."""

import torch


def reference(a, b):
    return torch.bmm(a, b)


def inputs(count, size):
    return torch.randn(count, size, size), torch.randn(count, size, size)


cases = [{"count": 131072, "size": 16}]
