import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super(ModelNew, self).__init__()

    def forward(self, A, B):
        # diag(A) @ B scales row i of B by A[i]
        return A.unsqueeze(1) * B
