import torch
import torch.nn as nn


class ModelNew(nn.Module):
    """Same convolution, captured once in a CUDA graph and replayed."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: tuple, stride: int = 1, padding: int = 0, dilation: int = 1, groups: int = 1, bias: bool = False):
        super().__init__()
        self.conv2d = nn.Conv2d(in_channels, out_channels, kernel_size, stride=stride, padding=padding, dilation=dilation, groups=groups, bias=bias)
        self._graph = None
        self._in = None
        self._out = None

    @torch.no_grad()
    def _capture(self, x):
        self._in = x.clone()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.conv2d(self._in)
        torch.cuda.current_stream().wait_stream(side)
        g = torch.cuda.CUDAGraph()
        with torch.cuda.graph(g):
            self._out = self.conv2d(self._in)
        self._graph = g

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self._graph is None or self._in.shape != x.shape:
            self._capture(x)
        self._in.copy_(x)
        self._graph.replay()
        return self._out.clone()
