import torch
import torch.nn as nn
import torch.nn.functional as F


@torch.compile(dynamic=False)
def kl_batchmean(p, t):
    return F.kl_div(torch.log(p), t, reduction="sum") / p.size(0)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, predictions, targets):
        return kl_batchmean(predictions, targets)
