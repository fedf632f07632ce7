import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sigmoid_scale_residual_kernel(y_ptr, n_elements, scaling_factor, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n_elements
    y = tl.load(y_ptr + offs, mask=mask)
    y = y + scaling_factor * tl.sigmoid(y)
    tl.store(y_ptr + offs, y, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, input_size, hidden_size, scaling_factor):
        super(ModelNew, self).__init__()
        self.gemm = nn.Linear(input_size, hidden_size)
        self.scaling_factor = scaling_factor

    def forward(self, x):
        y = torch.nn.functional.linear(x, self.gemm.weight, self.gemm.bias)
        n = y.numel()
        sigmoid_scale_residual_kernel[(triton.cdiv(n, 256),)](y, n, self.scaling_factor, BLOCK_SIZE=256)
        return y
