import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_bias_kernel(x_ptr, bias_ptr, out_ptr, n_elements, hw, C, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(axis=0)
    offsets = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    c = (offsets // hw) % C
    b = tl.load(bias_ptr + c, mask=mask)
    out = tl.maximum(x, 0.0) + b
    tl.store(out_ptr + offsets, out, mask=mask)


def relu_bias(x, bias):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    C = x.shape[1]
    hw = x.shape[2] * x.shape[3]
    grid = lambda meta: (triton.cdiv(n, meta["BLOCK_SIZE"]),)
    relu_bias_kernel[grid](x, bias, out, n, hw, C, BLOCK_SIZE=1024)
    return out


class ModelNew(nn.Module):
    """Conv2d runs in cuDNN, ReLU and bias are fused in one Triton kernel."""

    def __init__(self, in_channels, out_channels, kernel_size, bias_shape):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        return relu_bias(self.conv(x), self.bias)
