import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    """Average pooling over output features is linear: pool the weight rows, run a 4x smaller GEMM."""

    def __init__(self, in_features, out_features, pool_kernel_size, scale_factor):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.avg_pool = nn.AvgPool1d(kernel_size=pool_kernel_size)
        self.scale_factor = scale_factor
        self.pool = pool_kernel_size

    def forward(self, x):
        w = self.matmul.weight
        wp = w.view(-1, self.pool, w.shape[1]).mean(dim=1)
        bp = self.matmul.bias.view(-1, self.pool).mean(dim=1)
        y = F.gelu(torch.addmm(bp, x, wp.t()))
        return y.amax(dim=1) * self.scale_factor
