import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def mean_bias_softmax_tanh(x_ptr, bias_ptr, y_ptr, S, scale, C: tl.constexpr, BLOCK: tl.constexpr):
    n = tl.program_id(1)
    s = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = s < S
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for c in range(C):
        acc += tl.load(x_ptr + (n * C + c) * S + s, mask=keep, other=0.0)
    v = acc / C + tl.load(bias_ptr)
    # softmax over one element
    e = tl.exp(v - v)
    p = e / e
    t = tl.exp(2.0 * p)
    t = (t - 1.0) / (t + 1.0)
    tl.store(y_ptr + n * S + s, t * scale, mask=keep)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, bias_shape, scaling_factor):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(in_channels, out_channels, kernel_size, stride=stride, padding=padding)
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scaling_factor = scaling_factor

    def forward(self, x):
        x = self.conv_transpose(x)
        N, C, D, H, W = x.shape
        S = D * H * W
        y = torch.empty((N, 1, D, H, W), device=x.device, dtype=x.dtype)
        mean_bias_softmax_tanh[(triton.cdiv(S, 256), N)](x, self.bias, y, S, float(self.scaling_factor), C=C, BLOCK=256, num_warps=2)
        return y
