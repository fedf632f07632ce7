import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, num_features: int):
        super(ModelNew, self).__init__()
        self.bn = nn.BatchNorm2d(num_features=num_features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # Fold batch norm to one multiply-add per channel
        inv = torch.rsqrt(self.bn.running_var + self.bn.eps)
        scale = (self.bn.weight * inv).view(1, -1, 1, 1)
        shift = (self.bn.bias - self.bn.running_mean * self.bn.weight * inv).view(1, -1, 1, 1)
        return torch.addcmul(shift, x, scale)
