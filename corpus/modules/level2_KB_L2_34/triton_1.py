import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def ln_gelu_scale(x_ptr, w_ptr, b_ptr, y_ptr, n_rows, eps, scale, W: tl.constexpr, ROWS: tl.constexpr):
    r = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    c = tl.arange(0, W)
    m = (r < n_rows)[:, None]
    off = r[:, None] * W + c[None, :]
    x = tl.load(x_ptr + off, mask=m, other=0.0)
    mu = tl.sum(x, axis=1)[:, None] / W
    d = x - mu
    var = tl.sum(d * d, axis=1)[:, None] / W
    y = d * tl.rsqrt(var + eps) * tl.load(w_ptr + c)[None, :] + tl.load(b_ptr + c)[None, :]
    y = 0.5 * y * (1.0 + tl.erf(y * 0.7071067811865476)) * scale
    tl.store(y_ptr + off, y, mask=m)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, bias=True, eps=1e-5, scaling_factor=1.0):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(in_channels, out_channels, kernel_size, stride=stride, padding=padding, bias=bias)
        self.layer_norm = nn.LayerNorm(out_channels, eps=eps)
        self.scaling_factor = scaling_factor

    def forward(self, x):
        x = self.conv_transpose(x).contiguous()
        W = x.shape[-1]
        rows = x.numel() // W
        # in place, to spare four gigabytes
        ROWS = 16
        ln_gelu_scale[(triton.cdiv(rows, ROWS),)](x, self.layer_norm.weight, self.layer_norm.bias, x, rows,
                                                  self.layer_norm.eps, self.scaling_factor, W=W, ROWS=ROWS, num_warps=4)
        return x
