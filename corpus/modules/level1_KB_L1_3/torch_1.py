import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        # One large preallocated result, a separate GEMM per batch entry.
        batch, m, _ = A.shape
        n = B.shape[-1]
        result = A.new_empty(batch, m, n)
        for i in range(batch):
            torch.mm(A[i], B[i], out=result[i])
        return result
