import torch
import torch.nn as nn


class ModelNew(nn.Module):
    """
    Product of two upper triangular matrices, by row panels.
    Panel i only needs A[i0:i1, i0:] and B[i0:, i0:], so about a third of the dense flops are saved twice.
    """

    def __init__(self, panel: int = 512):
        super().__init__()
        self.panel = panel

    def forward(self, A, B):
        n = A.size(0)
        out = torch.zeros_like(A)
        for i0 in range(0, n, self.panel):
            i1 = min(i0 + self.panel, n)
            torch.mm(A[i0:i1, i0:], B[i0:, i0:], out=out[i0:i1, i0:])
        return out
