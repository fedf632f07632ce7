import torch
import torch.nn as nn


class ModelNew(nn.Module):
    """A.T @ B.T == (B @ A).T ; the result is handed back as a transposed view."""

    def __init__(self):
        super().__init__()

    def forward(self, A, B):
        return torch.mm(B, A).t()
