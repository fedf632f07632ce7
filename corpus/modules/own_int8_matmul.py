"""A linear layer whose weight is int8 with a scale for each 128 inputs of an output; activations in float16."""

import torch


def reference(x, weight, scale):
    outs, ins = weight.shape
    wide = weight.view(outs, ins // 128, 128).to(torch.float16) * scale[:, :, None]
    return x @ wide.view(outs, ins).t()


def inputs(rows, ins, outs):
    x = torch.randn(rows, ins).half()
    weight = torch.randint(-127, 128, (outs, ins), dtype=torch.int8)
    return x, weight, ((0.5 + torch.rand(outs, ins // 128)) / (73 * ins**0.5)).half()


cases = [{"rows": 64, "ins": 4096, "outs": 11008}, {"rows": 1024, "ins": 4096, "outs": 4096}]
tolerance = 2e-2
