import torch
import torch.nn as nn
import triton
import triton.language as tl

# Conv stays in cuDNN; activation + batch statistics are done in one Triton pass,
# a second pass recomputes the activation and normalises.


@triton.jit
def _act(x):
    sp = tl.where(x > 20.0, x, tl.log(1.0 + tl.exp(x)))
    th = 2.0 * tl.sigmoid(2.0 * sp) - 1.0
    return th * x


@triton.jit
def stats_kernel(x_ptr, sum_ptr, sq_ptr, C, HW, BLOCK: tl.constexpr):
    pid = tl.program_id(0)          # n * C + c
    c = pid % C
    s = tl.zeros([BLOCK], dtype=tl.float32)
    q = tl.zeros([BLOCK], dtype=tl.float32)
    for i in range(0, HW, BLOCK):
        o = i + tl.arange(0, BLOCK)
        m = o < HW
        a = _act(tl.load(x_ptr + pid * HW + o, mask=m, other=0.0))
        s += a
        q += a * a
    tl.atomic_add(sum_ptr + c, tl.sum(s, axis=0))
    tl.atomic_add(sq_ptr + c, tl.sum(q, axis=0))


@triton.jit
def norm_kernel(x_ptr, y_ptr, sum_ptr, sq_ptr, w_ptr, b_ptr, C, HW, count, eps, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    c = pid % C
    mean = tl.load(sum_ptr + c) / count
    var = tl.load(sq_ptr + c) / count - mean * mean
    rstd = 1.0 / tl.sqrt(var + eps)
    g = tl.load(w_ptr + c) * rstd
    b = tl.load(b_ptr + c) - mean * g
    for i in range(0, HW, BLOCK):
        o = i + tl.arange(0, BLOCK)
        m = o < HW
        a = _act(tl.load(x_ptr + pid * HW + o, mask=m, other=0.0))
        tl.store(y_ptr + pid * HW + o, a * g + b, mask=m)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, eps=1e-5, momentum=0.1):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.bn = nn.BatchNorm2d(out_channels, eps=eps, momentum=momentum)

    def forward(self, x):
        h = self.conv(x)
        N, C, H, W = h.shape
        buf = torch.zeros(2, C, device=x.device, dtype=torch.float32)
        y = torch.empty_like(h)
        grid = (N * C,)
        stats_kernel[grid](h, buf[0], buf[1], C, H * W, BLOCK=1024, num_warps=4)
        norm_kernel[grid](h, y, buf[0], buf[1], self.bn.weight, self.bn.bias,
                          C, H * W, float(N * H * W), self.bn.eps, BLOCK=1024, num_warps=4)
        return y
