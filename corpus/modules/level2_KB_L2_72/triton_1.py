import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def pool4_affine(x_ptr, y_ptr, scale_ptr, shift_ptr, C, D, H, W, PD, PH, PW, total, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < total
    pw = i % PW
    ph = (i // PW) % PH
    pd = (i // (PW * PH)) % PD
    nc = i // (PW * PH * PD)
    base = nc.to(tl.int64) * (D * H * W) + (pd * 4 * H + ph * 4) * W + pw * 4
    acc = tl.zeros([BLOCK], dtype=tl.float32)
    for a in range(4):
        for b in range(4):
            for c in range(4):
                acc += tl.load(x_ptr + base + (a * H + b) * W + c, mask=m, other=0.0)
    ch = nc % C
    s = tl.load(scale_ptr + ch, mask=m, other=0.0)
    t = tl.load(shift_ptr + ch, mask=m, other=0.0)
    tl.store(y_ptr + i, acc * 0.015625 * s + t, mask=m)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, bias_shape):
        super(ModelNew, self).__init__()
        self.conv_transpose = nn.ConvTranspose3d(in_channels, out_channels, kernel_size, stride=stride, padding=padding)
        self.batch_norm = nn.BatchNorm3d(out_channels)
        self.avg_pool1 = nn.AvgPool3d(kernel_size=2)
        self.avg_pool2 = nn.AvgPool3d(kernel_size=2)

    def forward(self, x):
        y = self.conv_transpose(x)
        N, C, D, H, W = y.shape
        # running statistics folded into scale / shift
        bn = self.batch_norm
        scale = bn.weight / torch.sqrt(bn.running_var + bn.eps)
        shift = bn.bias - bn.running_mean * scale
        PD, PH, PW = D // 4, H // 4, W // 4
        out = torch.empty((N, C, PD, PH, PW), device=x.device, dtype=x.dtype)
        total = out.numel()
        pool4_affine[(triton.cdiv(total, 256),)](y, out, scale, shift, C, D, H, W, PD, PH, PW, total, BLOCK=256)
        return out
