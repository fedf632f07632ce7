import torch
import torch.nn as nn


class ModelNew(nn.Module):
    """3D x 2D matmul as one flat GEMM."""

    def __init__(self):
        super(ModelNew, self).__init__()

    def forward(self, A, B):
        n, m, k = A.size()
        flat = A.reshape(n * m, k)
        out = torch.empty(n * m, B.size(1), device=A.device, dtype=A.dtype)
        torch.mm(flat, B, out=out)
        return out.view(n, m, -1)
