import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, predictions, targets):
        # sum t*log t - sum t*log p
        ent = torch.xlogy(targets, targets)
        cross = targets * predictions.log()
        return torch.mean(ent.sub_(cross))
