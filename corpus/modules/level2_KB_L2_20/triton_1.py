import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def residual_kernel(y_ptr, bias_ptr, S, C, BLOCK: tl.constexpr):
    plane = tl.program_id(1)
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = o < S
    b = tl.load(bias_ptr + plane % C)
    ptr = y_ptr + plane.to(tl.int64) * S + o
    v = tl.load(ptr, mask=m)
    # ((v + b) + v) * v + v
    tl.store(ptr, v * (2.0 * v + b + 1.0), mask=m)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, output_padding, bias_shape):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(in_channels, out_channels, kernel_size, stride=stride, padding=padding, output_padding=output_padding)
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        y = self.conv_transpose(x).contiguous()
        N, C, D, H, W = y.shape
        S = D * H * W
        residual_kernel[(triton.cdiv(S, 4096), N * C)](y, self.bias, S, C, BLOCK=4096, num_warps=8)
        return y
