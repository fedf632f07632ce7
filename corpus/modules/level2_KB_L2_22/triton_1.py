import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_lse_mish(x_ptr, y_ptr, N, scale, lo, hi, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    m = c < N
    x = tl.load(x_ptr + r * N + c, mask=m, other=0.0) * scale
    x = x + x
    x = tl.minimum(tl.maximum(x, lo), hi)
    x = tl.where(m, x, float("-inf"))
    mx = tl.max(x, axis=0)
    lse = mx + tl.log(tl.sum(tl.exp(x - mx), axis=0))
    sp = tl.log(1.0 + tl.exp(-tl.abs(lse))) + tl.maximum(lse, 0.0)
    th = 2.0 * tl.sigmoid(2.0 * sp) - 1.0
    tl.store(y_ptr + r, lse * (lse * th))


class ModelNew(nn.Module):
    def __init__(self, input_size, hidden_size, scale_factor, clamp_min, clamp_max):
        super().__init__()
        self.matmul = nn.Linear(input_size, hidden_size)
        self.scale_factor = scale_factor
        self.clamp_min = clamp_min
        self.clamp_max = clamp_max

    def forward(self, x):
        h = self.matmul(x)
        B, N = h.shape
        y = torch.empty(B, 1, device=h.device, dtype=h.dtype)
        row_lse_mish[(B,)](h, y, N, self.scale_factor, self.clamp_min, self.clamp_max,
                           BLOCK=triton.next_power_of_2(N), num_warps=4)
        return y
