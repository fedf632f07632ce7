import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def act_chain(x_ptr, bias_ptr, y_ptr, numel, spatial, channels, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    idx = pid * BLOCK + tl.arange(0, BLOCK)
    mask = idx < numel
    v = tl.load(x_ptr + idx, mask=mask, other=0.0)
    v = tl.maximum(v, 0.0)
    v = tl.where(v > 0, v, 0.01 * v)
    v = 0.5 * v * (1.0 + tl.erf(v * 0.7071067811865475))
    v = 1.0 / (1.0 + tl.exp(-v))
    ch = (idx // spatial) % channels
    v += tl.load(bias_ptr + ch, mask=mask, other=0.0)
    tl.store(y_ptr + idx, v, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, bias_shape):
        super(ModelNew, self).__init__()
        self.conv = nn.Conv3d(in_channels, out_channels, kernel_size)
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        x = self.conv(x)
        if not x.is_contiguous():
            x = x.contiguous()
        y = torch.empty_like(x)
        n = x.numel()
        spatial = x.shape[2] * x.shape[3] * x.shape[4]
        act_chain[(triton.cdiv(n, 1024),)](x, self.bias, y, n, spatial, x.shape[1], BLOCK=1024)
        return y
