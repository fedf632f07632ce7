import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, num_features: int):
        super().__init__()
        self.inorm = nn.InstanceNorm2d(num_features=num_features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # without affine parameters instance norm is a layer norm over the plane
        return F.layer_norm(x, x.shape[-2:], eps=self.inorm.eps)
