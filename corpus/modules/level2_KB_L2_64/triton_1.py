import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gelu_f(v):
    return 0.5 * v * (1.0 + tl.erf(v * 0.7071067811865475))


@triton.jit
def lse_act(y_ptr, out_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    v = tl.load(y_ptr + row * N + cols, mask=cols < N, other=-float("inf"))
    mx = tl.max(v, axis=0)
    r = mx + tl.log(tl.sum(tl.exp(v - mx), axis=0))
    r = tl.where(r > 0, r, 0.01 * r)
    r = tl.where(r > 0, r, 0.01 * r)
    r = gelu_f(gelu_f(r))
    tl.store(out_ptr + row, r)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features, bias=bias)

    def forward(self, x):
        y = self.linear(x)
        out = torch.empty((y.shape[0], 1), device=y.device, dtype=y.dtype)
        lse_act[(y.shape[0],)](y, out, y.shape[1], BLOCK=triton.next_power_of_2(y.shape[1]))
        return out
