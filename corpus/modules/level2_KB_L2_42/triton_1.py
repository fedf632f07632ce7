import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def pooled_lse(x_ptr, w_ptr, cb_ptr, bias_ptr, o_ptr, HW, inv_area,
               CI: tl.constexpr, CO: tl.constexpr, KK: tl.constexpr, KP: tl.constexpr, BLOCK: tl.constexpr):
    n = tl.program_id(0)
    co = tl.arange(0, CO)
    kk = tl.arange(0, KP)
    z = tl.load(cb_ptr + co) + tl.load(bias_ptr + co)
    for ci in tl.static_range(CI):
        s = tl.zeros((BLOCK,), dtype=tl.float32)
        for i in range(0, HW, BLOCK):
            o = i + tl.arange(0, BLOCK)
            s += tl.load(x_ptr + (n * CI + ci) * HW + o, mask=o < HW, other=0.0)
        total = tl.sum(s, axis=0)
        w = tl.load(w_ptr + (ci * CO + co[:, None]) * KK + kk[None, :], mask=kk[None, :] < KK, other=0.0)
        z += total * inv_area * tl.sum(w, axis=1)
    mx = tl.max(z, axis=0)
    lse = mx + tl.log(tl.sum(tl.exp(z - mx), axis=0))
    tl.store(o_ptr + n, lse * 10.0)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, bias_shape):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose2d(in_channels, out_channels, kernel_size)
        self.bias = nn.Parameter(torch.randn(bias_shape))

    def forward(self, x):
        N, CI, H, W = x.shape
        w = self.conv_transpose.weight
        kh, kw = w.shape[2], w.shape[3]
        out = torch.empty((N, 1), device=x.device, dtype=x.dtype)
        pooled_lse[(N,)](x.contiguous(), w, self.conv_transpose.bias, self.bias, out, H * W,
                         1.0 / ((H + kh - 1) * (W + kw - 1)), CI=CI, CO=w.shape[1], KK=kh * kw,
                         KP=triton.next_power_of_2(kh * kw), BLOCK=1024, num_warps=4)
        return out
