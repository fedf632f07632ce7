import torch
import torch.nn as nn


class ModelNew(nn.Module):
    # sum_j (x @ W^T)[:, j] = x @ (sum_j W[j]) : gemm becomes a matrix-vector product
    def __init__(self, input_size, hidden_size, scaling_factor):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(hidden_size, input_size))
        self.scaling_factor = scaling_factor

    def forward(self, x):
        v = self.weight.sum(dim=0).mul_(self.scaling_factor * 0.5) if not torch.is_grad_enabled() \
            else self.weight.sum(dim=0) * (self.scaling_factor * 0.5)
        return torch.mv(x, v).unsqueeze(1)
