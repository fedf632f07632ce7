import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, kernel_size: int, stride: int = None, padding: int = 0):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.avg_pool = nn.AvgPool2d(kernel_size=kernel_size, stride=stride, padding=padding)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        k = self.kernel_size
        if self.padding or (self.stride not in (None, k)):
            return self.avg_pool(x)
        # non-overlapping windows: cut off the rest and take the mean over a 6-D view
        oh, ow = x.shape[2] // k, x.shape[3] // k
        x = x[:, :, :oh * k, :ow * k]
        return x.unfold(2, k, k).unfold(3, k, k).mean(dim=(-2, -1))
