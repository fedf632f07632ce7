"""The gated MLP of a decoder layer: down(silu(gate(x)) * up(x)), in float16."""

import torch
import torch.nn.functional as F


def reference(x, w_gate, w_up, w_down):
    return (F.silu(x @ w_gate.t()) * (x @ w_up.t())) @ w_down.t()


def inputs(tokens, width, hidden):
    x = torch.randn(tokens, width).half()
    w_gate = (torch.randn(hidden, width) / width**0.5).half()
    w_up = (torch.randn(hidden, width) / width**0.5).half()
    w_down = (torch.randn(width, hidden) / hidden**0.5).half()
    return x, w_gate, w_up, w_down


cases = [{"tokens": 4096, "width": 2048, "hidden": 5632}]
