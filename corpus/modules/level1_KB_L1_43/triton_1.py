import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def maxpool3d_kernel(x_ptr, y_ptr, total, D, H, W, OD, OH, OW,
                     stride, pad, dil, K: tl.constexpr, BLOCK: tl.constexpr):
    idx = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = idx < total
    ow = idx % OW
    oh = (idx // OW) % OH
    od = (idx // (OW * OH)) % OD
    nc = idx // (OW * OH * OD)
    best = tl.full((BLOCK,), float('-inf'), dtype=tl.float32)
    for kd in range(K):
        d = od * stride - pad + kd * dil
        for kh in range(K):
            h = oh * stride - pad + kh * dil
            for kw in range(K):
                w = ow * stride - pad + kw * dil
                ok = mask & (d >= 0) & (d < D) & (h >= 0) & (h < H) & (w >= 0) & (w < W)
                v = tl.load(x_ptr + ((nc * D + d) * H + h) * W + w, mask=ok, other=float('-inf'))
                best = tl.maximum(best, v)
    tl.store(y_ptr + idx, best, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, kernel_size: int, stride: int = None, padding: int = 0, dilation: int = 1,
                 return_indices: bool = False, ceil_mode: bool = False):
        super(ModelNew, self).__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation

    def _out(self, n):
        return (n + 2 * self.padding - self.dilation * (self.kernel_size - 1) - 1) // self.stride + 1

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        N, C, D, H, W = x.shape
        OD, OH, OW = self._out(D), self._out(H), self._out(W)
        y = torch.empty((N, C, OD, OH, OW), device=x.device, dtype=x.dtype)
        total = y.numel()
        maxpool3d_kernel[(triton.cdiv(total, 256),)](x, y, total, D, H, W, OD, OH, OW, self.stride, self.padding,
                                                     self.dilation, K=self.kernel_size, BLOCK=256)
        return y
