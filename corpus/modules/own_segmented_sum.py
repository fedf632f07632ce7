"""Sums of rows by sorted segment, as in graph networks."""

import torch


def reference(values, segments, count):
    out = torch.zeros(count, values.shape[1], device=values.device, dtype=values.dtype)
    return out.index_add(0, segments, values)


def inputs(rows, width, count):
    return torch.randn(rows, width), torch.randint(0, count, (rows,)).sort().values, count


cases = [{"rows": 1000000, "width": 64, "count": 50000}]
