import torch
import torch.nn as nn


class ModelNew(nn.Module):
    """Split the long K axis in chunks, batched matmul on the chunks, then add the partial results."""

    CHUNKS = 64

    def __init__(self):
        super().__init__()

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        M, K = A.shape
        N = B.shape[1]
        c = self.CHUNKS
        if K % c != 0:
            return A @ B
        a = A.view(M, c, K // c).transpose(0, 1)      # c, M, K/c  (strided view, no copy)
        b = B.view(c, K // c, N)
        return torch.bmm(a, b).sum(dim=0)
