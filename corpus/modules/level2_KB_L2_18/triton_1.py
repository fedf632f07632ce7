import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def fused_all(x_ptr, w_ptr, b_ptr, o_ptr, B, K, O, BLOCK_B: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_O: tl.constexpr):
    rb = tl.program_id(0) * BLOCK_B + tl.arange(0, BLOCK_B)
    rk = tl.arange(0, BLOCK_K)
    ro = tl.arange(0, BLOCK_O)
    w = tl.load(w_ptr + ro[:, None] * K + rk[None, :], mask=(ro[:, None] < O) & (rk[None, :] < K), other=0.0)
    wsum = tl.sum(w, axis=0)
    bsum = tl.sum(tl.load(b_ptr + ro, mask=ro < O, other=0.0), axis=0)
    x = tl.load(x_ptr + rb[:, None] * K + rk[None, :], mask=(rb[:, None] < B) & (rk[None, :] < K), other=0.0)
    s = tl.sum(x * wsum[None, :], axis=1) + bsum
    # logsumexp of a single value, twice
    s = s + tl.log(tl.exp(s - s))
    s = s + tl.log(tl.exp(s - s))
    tl.store(o_ptr + rb, s, mask=rb < B)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features):
        super(ModelNew, self).__init__()
        self.linear = nn.Linear(in_features, out_features)

    def forward(self, x):
        B, K = x.shape
        O = self.linear.out_features
        out = torch.empty(B, 1, device=x.device, dtype=x.dtype)
        fused_all[(triton.cdiv(B, 64),)](x, self.linear.weight, self.linear.bias, out, B, K, O,
                                         BLOCK_B=64, BLOCK_K=triton.next_power_of_2(K), BLOCK_O=triton.next_power_of_2(O))
        return out
