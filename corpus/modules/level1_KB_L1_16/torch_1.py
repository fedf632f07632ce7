import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super(ModelNew, self).__init__()

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        # make the transposed operand contiguous first so that the GEMM sees plain row-major data
        At = A.transpose(0, 1).contiguous()
        return torch.addmm(torch.zeros(1, device=A.device, dtype=A.dtype), At, B, beta=0)
