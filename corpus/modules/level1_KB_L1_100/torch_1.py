import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, predictions, targets):
        return F.relu(torch.addcmul(torch.ones_like(predictions), predictions, targets, value=-1)).mean()
