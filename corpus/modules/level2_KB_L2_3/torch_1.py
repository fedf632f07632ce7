import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    """Layer norm is shift invariant, so adding the scalar has no effect and can be dropped."""

    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, output_padding, sum_weight, norm_shape, pool_kernel_size):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(in_channels, out_channels, kernel_size, stride=stride, padding=padding, output_padding=output_padding)
        self.sum_weight = nn.Parameter(torch.tensor(sum_weight))
        self.norm = nn.LayerNorm(norm_shape)
        self.avg_pool = nn.AvgPool3d(kernel_size=pool_kernel_size)
        self.gelu = nn.GELU()

    def forward(self, x):
        y = self.conv_transpose(x)
        y = F.layer_norm(y, self.norm.normalized_shape, self.norm.weight, self.norm.bias, self.norm.eps)
        y = F.avg_pool3d(y, self.avg_pool.kernel_size)
        return F.gelu(y)
