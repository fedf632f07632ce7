import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def tiny_linear_pool_sum(x_ptr, w_ptr, b_ptr, o_ptr, B, K, P, scale,
                         POOL: tl.constexpr, BLOCK_B: tl.constexpr):
    # each program handles BLOCK_B rows; everything lives in registers
    rows = tl.program_id(0) * BLOCK_B + tl.arange(0, BLOCK_B)
    rmask = rows < B
    total = tl.zeros([BLOCK_B], dtype=tl.float32)
    for p in range(0, P):
        best = tl.full([BLOCK_B], float("-inf"), dtype=tl.float32)
        for j in tl.static_range(POOL):
            col = p * POOL + j
            acc = tl.zeros([BLOCK_B], dtype=tl.float32) + tl.load(b_ptr + col)
            for k in range(0, K):
                xv = tl.load(x_ptr + rows * K + k, mask=rmask, other=0.0)
                acc += xv * tl.load(w_ptr + col * K + k)
            best = tl.maximum(best, acc)
        total += best
    tl.store(o_ptr + rows, total * scale, mask=rmask)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, kernel_size, scale_factor):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.max_pool = nn.MaxPool1d(kernel_size)
        self.scale_factor = scale_factor
        self.kernel_size = kernel_size

    def forward(self, x):
        B, K = x.shape
        N = self.matmul.weight.shape[0]
        out = torch.empty(B, device=x.device, dtype=x.dtype)
        tiny_linear_pool_sum[(triton.cdiv(B, 32),)](
            x, self.matmul.weight, self.matmul.bias, out, B, K, N // self.kernel_size,
            self.scale_factor, POOL=self.kernel_size, BLOCK_B=32, num_warps=1)
        return out
