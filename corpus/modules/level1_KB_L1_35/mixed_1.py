import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def group_sums(x_ptr, sum_ptr, sq_ptr, group_size, BLOCK: tl.constexpr, STEPS: tl.constexpr):
    g = tl.program_id(0)
    part = tl.program_id(1)
    base = x_ptr + g.to(tl.int64) * group_size
    a = tl.zeros([BLOCK], tl.float32)
    q = tl.zeros([BLOCK], tl.float32)
    for i in range(STEPS):
        o = (part * STEPS + i) * BLOCK + tl.arange(0, BLOCK)
        v = tl.load(base + o, mask=o < group_size, other=0.0)
        a += v
        q += v * v
    tl.atomic_add(sum_ptr + g, tl.sum(a, 0))
    tl.atomic_add(sq_ptr + g, tl.sum(q, 0))


class ModelNew(nn.Module):
    """Statistics in Triton, scale and shift with a broadcasted torch addcmul."""

    def __init__(self, num_features: int, num_groups: int):
        super().__init__()
        self.gn = nn.GroupNorm(num_groups=num_groups, num_channels=num_features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        N, C, H, W = x.shape
        G = self.gn.num_groups
        gsz = C // G * H * W
        stats = torch.zeros(2, N * G, device=x.device, dtype=torch.float32)
        BLOCK, STEPS = 2048, 16
        group_sums[(N * G, triton.cdiv(gsz, BLOCK * STEPS))](x, stats[0], stats[1], gsz, BLOCK=BLOCK, STEPS=STEPS)
        mean = stats[0] / gsz
        var = stats[1] / gsz - mean * mean
        rstd = torch.rsqrt(var + self.gn.eps)
        w = self.gn.weight.view(1, G, C // G)
        b = self.gn.bias.view(1, G, C // G)
        scale = rstd.view(N, G, 1) * w
        shift = b - mean.view(N, G, 1) * scale
        return torch.addcmul(shift.reshape(N, C, 1, 1), x, scale.reshape(N, C, 1, 1))
