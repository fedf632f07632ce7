import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def mish(x):
    # x * tanh(softplus(x)), with softplus thresholded at 20 as in PyTorch
    sp = tl.where(x > 20.0, x, tl.log(1.0 + tl.exp(tl.minimum(x, 20.0))))
    e = tl.exp(-2.0 * sp)
    return x * (1.0 - e) / (1.0 + e)


@triton.jit
def double_mish_kernel(ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    v = tl.load(ptr + i, mask=m)
    v = mish(mish(v))
    tl.store(ptr + i, v, mask=m)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)

    def forward(self, x):
        y = self.conv(x)
        n = y.numel()
        # in place: nobody else holds the convolution output
        double_mish_kernel[(triton.cdiv(n, 2048),)](y, n, BLOCK=2048, num_warps=8)
        return y
