import torch, triton
import triton.language as tl
from torch import nn


@triton.autotune(
    configs=[
        triton.Config({"BLOCK": 512}, num_warps=2),
        triton.Config({"BLOCK": 1024}, num_warps=4),
        triton.Config({"BLOCK": 2048}, num_warps=8),
        triton.Config({"BLOCK": 4096}, num_warps=8),
    ],
    key=["n"],
)
@triton.jit
def _post(x_ptr, b_ptr, y_ptr, n, plane, channels, scale, BLOCK: tl.constexpr):
    off = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = off < n
    v = tl.load(x_ptr + off, mask=m, other=0.0)
    ch = (off // plane) % channels
    v = v + tl.load(b_ptr + ch, mask=m, other=0.0)
    v = tl.minimum(tl.maximum(v, 0.0), 1.0)
    v = v * scale
    v = tl.minimum(tl.maximum(v, 0.0), 1.0)
    v = v / scale
    tl.store(y_ptr + off, v, mask=m)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, output_padding, bias_shape, scaling_factor):
        super(ModelNew, self).__init__()
        self.conv_transpose = nn.ConvTranspose2d(in_channels, out_channels, kernel_size, stride=stride, padding=padding, output_padding=output_padding)
        self.bias = nn.Parameter(torch.randn(bias_shape))
        self.scaling_factor = scaling_factor

    def forward(self, x):
        x = self.conv_transpose(x)
        y = torch.empty_like(x)
        n = x.numel()
        _post[lambda META: (triton.cdiv(n, META["BLOCK"]),)](
            x, self.bias, y, n, x.size(2) * x.size(3), x.size(1), float(self.scaling_factor))
        return y
