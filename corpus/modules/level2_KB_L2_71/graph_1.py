import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    """Captures the whole forward in a CUDA graph the first time a shape is seen."""

    def __init__(self, in_channels, out_channels, kernel_size, divisor):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.divisor = divisor
        self._graph = None
        self._static_in = None
        self._static_out = None

    def _run(self, x):
        return F.leaky_relu(self.conv(x) / self.divisor, negative_slope=0.01)

    @torch.no_grad()
    def forward(self, x):
        if not x.is_cuda:
            return self._run(x)
        if self._graph is None or self._static_in.shape != x.shape:
            self._static_in = x.clone()
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(3):
                    self._run(self._static_in)
            torch.cuda.current_stream().wait_stream(side)
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph):
                self._static_out = self._run(self._static_in)
        self._static_in.copy_(x)
        self._graph.replay()
        return self._static_out.clone()
