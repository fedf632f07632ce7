import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def bn_apply(x_ptr, y_ptr, mean_ptr, var_ptr, w_ptr, b_ptr, C, HW, eps, BLOCK: tl.constexpr):
    plane = tl.program_id(0)
    c = plane % C
    scale = tl.load(w_ptr + c) / tl.sqrt(tl.load(var_ptr + c) + eps)
    shift = tl.load(b_ptr + c) - tl.load(mean_ptr + c) * scale
    offs = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < HW
    base = plane * HW
    x = tl.load(x_ptr + base + offs, mask=mask)
    tl.store(y_ptr + base + offs, x * scale + shift, mask=mask)


class ModelNew(nn.Module):
    """Batch statistics from torch, the affine application fused in one Triton pass."""

    def __init__(self, num_features: int):
        super().__init__()
        self.bn = nn.BatchNorm2d(num_features=num_features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        bn = self.bn
        N, C, H, W = x.shape
        if bn.training:
            var, mean = torch.var_mean(x, dim=(0, 2, 3), unbiased=False)
            count = N * H * W
            with torch.no_grad():
                bn.num_batches_tracked.add_(1)
                bn.running_mean.lerp_(mean, bn.momentum)
                bn.running_var.lerp_(var * (count / (count - 1)), bn.momentum)
        else:
            mean, var = bn.running_mean, bn.running_var
        y = torch.empty_like(x)
        BLOCK = 4096
        bn_apply[(N * C, triton.cdiv(H * W, BLOCK))](
            x, y, mean, var, bn.weight, bn.bias, C, H * W, bn.eps, BLOCK=BLOCK, num_warps=8)
        return y
