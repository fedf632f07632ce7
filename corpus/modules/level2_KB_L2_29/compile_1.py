import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.fn = torch.compile(self._f, mode="reduce-overhead", fullgraph=True)

    @staticmethod
    def _f(x, w, b):
        return F.mish(F.mish(F.linear(x, w, b)))

    def forward(self, x):
        return self.fn(x, self.linear.weight, self.linear.bias).clone()
