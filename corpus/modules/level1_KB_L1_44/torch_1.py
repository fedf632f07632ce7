import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    """Average pooling as a grouped convolution with a constant kernel."""

    def __init__(self, kernel_size: int, stride: int = 1, padding: int = 0):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.register_buffer("w", torch.full((1, 1, kernel_size), 1.0 / kernel_size), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        B, C, L = x.shape
        y = F.conv1d(x.view(B * C, 1, L), self.w.to(x.device), stride=self.stride, padding=self.padding)
        return y.view(B, C, -1)
