import torch
import torch.nn as nn


class ModelNew(nn.Module):
    """After max(dim=1, keepdim) there is one column; subtracting its own mean leaves zero and gelu(0) = 0."""

    def __init__(self, in_features, out_features, max_dim):
        super().__init__()
        self.gemm = nn.Linear(in_features, out_features)
        self.max_dim = max_dim

    def forward(self, x):
        if self.max_dim == 1:
            return x.new_zeros((x.shape[0], 1))
        y = self.gemm(x).amax(dim=self.max_dim, keepdim=True)
        return torch.nn.functional.gelu(y - y.mean(dim=1, keepdim=True))
