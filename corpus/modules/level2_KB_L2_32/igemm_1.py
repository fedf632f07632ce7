import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def implicit_gemm_min(x_ptr, w_ptr, b_ptr, y_ptr, H, W, OH, OW, NPIX, scale,
                      CIN: tl.constexpr, COUT: tl.constexpr, KS: tl.constexpr,
                      KPAD: tl.constexpr, BM: tl.constexpr):
    """Rows: output pixels over the whole batch; columns: output channels; depth: Cin*KS*KS padded to KPAD."""
    pix = tl.program_id(0) * BM + tl.arange(0, BM)
    live = pix < NPIX
    n = pix // (OH * OW)
    r = pix % (OH * OW)
    oh = r // OW
    ow = r % OW
    k = tl.arange(0, KPAD)
    kin = k < CIN * KS * KS
    ci = k // (KS * KS)
    kh = (k // KS) % KS
    kw = k % KS
    addr = ((n[:, None] * CIN + ci[None, :]) * H + oh[:, None] + kh[None, :]) * W + ow[:, None] + kw[None, :]
    a = tl.load(x_ptr + addr, mask=live[:, None] & kin[None, :], other=0.0)
    co = tl.arange(0, COUT)
    b = tl.load(w_ptr + co[None, :] * (CIN * KS * KS) + k[:, None], mask=kin[:, None], other=0.0)
    acc = tl.dot(a, b, input_precision="ieee")
    acc = (acc + tl.load(b_ptr + co)[None, :]) * scale
    tl.store(y_ptr + pix, tl.min(acc, axis=1), mask=live)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, scale_factor):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.scale_factor = scale_factor

    def forward(self, x):
        N, C, H, W = x.shape
        co, _, ks, _ = self.conv.weight.shape
        OH, OW = H - ks + 1, W - ks + 1
        y = torch.empty((N, 1, OH, OW), device=x.device, dtype=x.dtype)
        npix = N * OH * OW
        implicit_gemm_min[(triton.cdiv(npix, 128),)](
            x.contiguous(), self.conv.weight, self.conv.bias, y, H, W, OH, OW, npix, self.scale_factor,
            CIN=C, COUT=co, KS=ks, KPAD=triton.next_power_of_2(C * ks * ks), BM=128)
        return y
