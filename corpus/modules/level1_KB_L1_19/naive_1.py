import torch
import triton
import triton.language as tl


@triton.jit
def relu_one(x_ptr, y_ptr):
    """one program, one element"""
    pid = tl.program_id(0)
    x = tl.load(x_ptr + pid)
    if x < 0:
        x = x * 0
    tl.store(y_ptr + pid, x)


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        y = torch.empty_like(x)
        relu_one[(x.numel(),)](x, y, num_warps=1)
        return y
