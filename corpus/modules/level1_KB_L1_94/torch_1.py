import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, predictions, targets):
        diff = torch.sub(predictions, targets).view(-1)
        return torch.dot(diff, diff) / diff.numel()
