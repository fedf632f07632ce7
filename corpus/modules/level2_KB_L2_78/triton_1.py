import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def pool6_sum_kernel(x_ptr, out_ptr, D, H, W, OD, OH, OW, C: tl.constexpr, WIN: tl.constexpr):
    pid = tl.program_id(0)
    ow = pid % OW
    oh = (pid // OW) % OH
    od = (pid // (OW * OH)) % OD
    n = pid // (OW * OH * OD)
    c = tl.arange(0, C)
    t = tl.arange(0, 64)           # 6 x 6 patch over (h, w), padded to 64
    th = t // WIN
    tw = t % WIN
    ok = t < WIN * WIN
    best = tl.full((C,), -float("inf"), tl.float32)
    for d in range(WIN):
        off = ((n * C + c[:, None]) * D + od * WIN + d) * H * W + (oh * WIN + th)[None, :] * W + (ow * WIN + tw)[None, :]
        v = tl.load(x_ptr + off, mask=ok[None, :], other=-float("inf"))
        best = tl.maximum(best, tl.max(v, axis=1))
    tl.store(out_ptr + pid, tl.sum(best, axis=0))


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(in_channels, out_channels, kernel_size, stride=stride, padding=padding)
        self.max_pool1 = nn.MaxPool3d(kernel_size=2)
        self.max_pool2 = nn.MaxPool3d(kernel_size=3)

    def forward(self, x):
        y = self.conv_transpose(x)
        N, C, D, H, W = y.shape
        OD, OH, OW = D // 6, H // 6, W // 6
        out = torch.empty((N, 1, OD, OH, OW), device=y.device, dtype=y.dtype)
        pool6_sum_kernel[(N * OD * OH * OW,)](y, out, D, H, W, OD, OH, OW, C=C, WIN=6, num_warps=4)
        return out
