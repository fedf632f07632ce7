import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def min_sum_gelu_bias(x_ptr, bias_ptr, y_ptr, H, W, C: tl.constexpr, BW: tl.constexpr):
    n = tl.program_id(0)
    w = tl.program_id(1) * BW + tl.arange(0, BW)
    mw = w < W
    c = tl.arange(0, C)
    total = tl.zeros((BW,), dtype=tl.float32)
    for h in range(H):
        v = tl.load(x_ptr + ((n * C + c[:, None]) * H + h) * W + w[None, :], mask=mw[None, :], other=0.0)
        total += tl.min(v, axis=0)
    g = 0.5 * total * (1.0 + tl.erf(total * 0.70710678118))
    b = tl.load(bias_ptr + c)
    tl.store(y_ptr + (n * C + c[:, None]) * W + w[None, :], g[None, :] + b[:, None], mask=mw[None, :])


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, output_padding, bias_shape):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose2d(in_channels, out_channels, kernel_size, stride, padding, output_padding)
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        y = self.conv_transpose(x)
        N, C, H, W = y.shape
        out = torch.empty((N, C, 1, W), device=y.device, dtype=y.dtype)
        min_sum_gelu_bias[(N, triton.cdiv(W, 16))](y, self.bias, out, H, W, C=C, BW=16, num_warps=4)
        return out
