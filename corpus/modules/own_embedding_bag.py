"""Weighted sums of 32 rows of a table for each sample, as recommenders do."""

import torch


def reference(table, index, weight):
    return (table[index] * weight.unsqueeze(-1)).sum(dim=1)


def inputs(rows, width, samples, bag):
    return torch.randn(rows, width), torch.randint(0, rows, (samples, bag)), torch.rand(samples, bag)


cases = [{"rows": 400000, "width": 128, "samples": 16384, "bag": 32}]
