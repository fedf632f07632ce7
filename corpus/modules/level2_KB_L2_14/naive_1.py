import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_kernel(x_ptr, w_ptr, y_ptr, K, HID, factor):
    # scalar code: one program per batch row
    r = tl.program_id(0)
    total = 0.0
    for j in range(HID):
        dot = 0.0
        for k in range(K):
            dot += tl.load(x_ptr + r * K + k) * tl.load(w_ptr + j * K + k)
        total += dot / 2
    tl.store(y_ptr + r, total * factor)


class ModelNew(nn.Module):
    def __init__(self, input_size, hidden_size, scaling_factor):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(hidden_size, input_size))
        self.scaling_factor = scaling_factor

    def forward(self, x):
        y = torch.empty((x.shape[0], 1), device=x.device, dtype=x.dtype)
        row_kernel[(x.shape[0],)](x, self.weight, y, x.shape[1], self.weight.shape[0], self.scaling_factor, num_warps=1)
        return y
