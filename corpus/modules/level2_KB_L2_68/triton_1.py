import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def one_output_per_program(x_ptr, w_ptr, b_ptr, c_ptr, o_ptr, K, N, BLOCK_K: tl.constexpr):
    # naive: each program produces exactly one output scalar
    row = tl.program_id(0)
    col = tl.program_id(1)
    k = tl.arange(0, BLOCK_K)
    mask = k < K
    xv = tl.load(x_ptr + row * K + k, mask=mask, other=0.0)
    wv = tl.load(w_ptr + col * K + k, mask=mask, other=0.0)
    acc = tl.sum(xv * wv, axis=0) + tl.load(b_ptr + col)
    const = tl.load(c_ptr)
    acc = tl.minimum(acc, const) - const
    tl.store(o_ptr + row * N + col, acc)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, constant):
        super(ModelNew, self).__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.constant = nn.Parameter(torch.tensor(constant))

    def forward(self, x):
        B, K = x.shape
        N = self.linear.out_features
        out = torch.empty(B, N, device=x.device, dtype=x.dtype)
        one_output_per_program[(B, N)](x, self.linear.weight, self.linear.bias, self.constant, out, K, N,
                                       BLOCK_K=triton.next_power_of_2(K), num_warps=1)
        return out
