import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(
    configs=[triton.Config({"BLOCK": b}, num_warps=w) for b, w in ((512, 4), (1024, 4), (2048, 8), (4096, 8))],
    key=["n"],
)
@triton.jit
def sub_mish(x_ptr, y_ptr, n, v1, v2, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    x = x - v1 - v2
    e = tl.exp(-tl.abs(x))
    # softplus = max(x,0) + log1p(exp(-|x|))
    sp = tl.maximum(x, 0.0) + tl.log(1.0 + e)
    t = tl.exp(-2.0 * sp)
    y = x * (1.0 - t) / (1.0 + t)
    tl.store(y_ptr + offs, y, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, subtract_value_1, subtract_value_2):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.subtract_value_1 = subtract_value_1
        self.subtract_value_2 = subtract_value_2

    def forward(self, x):
        c = self.conv(x)
        y = torch.empty_like(c)
        n = c.numel()
        grid = lambda meta: (triton.cdiv(n, meta["BLOCK"]),)
        sub_mish[grid](c, y, n, self.subtract_value_1, self.subtract_value_2)
        return y
