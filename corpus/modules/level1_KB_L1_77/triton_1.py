import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def convt3d_general(x_ptr, w_ptr, y_ptr, D, H, W, OD, OH, OW, S, P, DIL,
                    IC: tl.constexpr, OC: tl.constexpr, K: tl.constexpr, BM: tl.constexpr):
    n = tl.program_id(1)
    o = tl.program_id(0) * BM + tl.arange(0, BM)
    live = o < OD * OH * OW
    od = o // (OH * OW)
    oh = (o // OW) % OH
    ow = o % OW
    ic = tl.arange(0, IC)
    oc = tl.arange(0, OC)
    acc = tl.zeros((BM, OC), dtype=tl.float32)
    for t in range(K * K * K):
        a = od + P - (t // (K * K)) * DIL
        b = oh + P - ((t // K) % K) * DIL
        c = ow + P - (t % K) * DIL
        hit = live & (a % S == 0) & (b % S == 0) & (c % S == 0) & (a >= 0) & (b >= 0) & (c >= 0)
        i = a // S
        j = b // S
        l = c // S
        hit = hit & (i < D) & (j < H) & (l < W)
        xs = tl.load(x_ptr + n * IC * D * H * W + ic[None, :] * (D * H * W) + ((i * H + j) * W + l)[:, None], mask=hit[:, None], other=0.0)
        ws = tl.load(w_ptr + ic[:, None] * (OC * K * K * K) + oc[None, :] * (K * K * K) + t)
        acc += tl.dot(xs, ws)
    tl.store(y_ptr + n * OC * OD * OH * OW + oc[None, :] * (OD * OH * OW) + o[:, None], acc, mask=live[:, None])


class ModelNew(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, stride: int = 1, padding: int = 0, dilation: int = 1, bias: bool = False):
        super().__init__()
        self.conv_transpose3d = nn.ConvTranspose3d(in_channels, out_channels, kernel_size=(kernel_size, kernel_size, kernel_size), stride=stride, padding=padding, dilation=dilation, bias=bias)
        self.cfg = (kernel_size, stride, padding, dilation)

    def forward(self, x):
        k, s, p, dil = self.cfg
        w = self.conv_transpose3d.weight
        n, ic = x.shape[:2]
        oc = w.shape[1]
        osz = [(v - 1) * s - 2 * p + dil * (k - 1) + 1 for v in x.shape[2:]]
        y = torch.empty((n, oc, *osz), device=x.device, dtype=x.dtype)
        BM = 64
        total = osz[0] * osz[1] * osz[2]
        convt3d_general[(triton.cdiv(total, BM), n)](x, w, y, *x.shape[2:], *osz, s, p, dil, IC=ic, OC=oc, K=k, BM=BM, num_warps=4)
        return y
