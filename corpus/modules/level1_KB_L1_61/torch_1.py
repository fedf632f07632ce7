import torch
import torch.nn as nn


class ModelNew(nn.Module):
    # Scatter formulation: one pointwise product per kernel tap, accumulated in place into shifted windows of the output.
    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, stride: int = 1, padding: int = 0, output_padding: int = 0, groups: int = 1, bias: bool = False):
        super().__init__()
        self.conv_transpose3d = nn.ConvTranspose3d(in_channels, out_channels, kernel_size=(kernel_size, kernel_size, kernel_size), stride=stride, padding=padding, output_padding=output_padding, groups=groups, bias=bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        w = self.conv_transpose3d.weight
        n, ci, d, h, wd = x.shape
        co, kd, kh, kw = w.shape[1:]
        out = x.new_zeros(n, co, d + kd - 1, h + kh - 1, wd + kw - 1)
        flat = x.reshape(n, ci, -1)
        for a in range(kd):
            for b in range(kh):
                for c in range(kw):
                    tap = torch.matmul(w[:, :, a, b, c].t(), flat).view(n, co, d, h, wd)
                    out[:, :, a:a + d, b:b + h, c:c + wd].add_(tap)
        return out
