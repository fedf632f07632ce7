import torch
import torch.nn as nn


class ModelNew(nn.Module):
    """Captures the three pointwise kernels in a CUDA graph on first use and replays it afterwards."""

    def __init__(self):
        super().__init__()
        self._graph = None
        self._in = None
        self._out = None

    def _capture(self, x):
        self._in = x.clone()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(2):
                self._in / (1 + torch.abs(self._in))
        torch.cuda.current_stream().wait_stream(side)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._out = self._in / (1 + torch.abs(self._in))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self._graph is None or self._in.shape != x.shape:
            self._capture(x)
        self._in.copy_(x)
        self._graph.replay()
        return self._out.clone()
