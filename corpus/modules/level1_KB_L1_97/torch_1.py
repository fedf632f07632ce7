import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, predictions, targets):
        dots = torch.einsum("bd,bd->b", predictions, targets)
        na = torch.linalg.vector_norm(predictions, dim=1).clamp_min(1e-8)
        nb = torch.linalg.vector_norm(targets, dim=1).clamp_min(1e-8)
        return 1.0 - torch.mean(dots / (na * nb))
