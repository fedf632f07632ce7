import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, stride: int = 1, dilation: int = 1, bias: bool = False):
        super().__init__()
        self.conv1d = nn.Conv1d(in_channels, out_channels, kernel_size, stride=stride, dilation=dilation, bias=bias)

    def forward(self, x):
        # a strided view stands in for im2col, then one batched matmul
        cv = self.conv1d
        n, c, l = x.shape
        k, s, d = cv.kernel_size[0], cv.stride[0], cv.dilation[0]
        ol = (l - d * (k - 1) - 1) // s + 1
        sn, sc, sl = x.stride()
        cols = x.as_strided((n, c, k, ol), (sn, sc, d * sl, s * sl)).reshape(n, c * k, ol)
        w = cv.weight.flatten(1)
        if cv.bias is None:
            return torch.matmul(w, cols)
        return torch.baddbmm(cv.bias[None, :, None].expand(n, -1, ol), w.expand(n, -1, -1), cols)
