import torch
import torch.nn as nn


class ModelNew(nn.Module):
    """Softmax over a dimension of size 1 is identically one, so nothing upstream matters."""

    def __init__(self, in_features, out_features, dropout_p):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.dropout = nn.Dropout(dropout_p)

    def forward(self, x):
        return torch.ones((x.shape[0], 1), device=x.device, dtype=x.dtype)
