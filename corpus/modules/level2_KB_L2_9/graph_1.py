import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    """The work is launch bound: capture it once in a CUDA graph and replay."""

    def __init__(self, in_features, out_features, subtract_value, multiply_value):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.subtract_value = subtract_value
        self.multiply_value = multiply_value
        self._graph = None
        self._x = None
        self._y = None

    def _compute(self, x):
        return torch.relu((F.linear(x, self.linear.weight, self.linear.bias) - self.subtract_value) * self.multiply_value)

    @torch.no_grad()
    def forward(self, x):
        if self._graph is None:
            self._x = x.clone()
            s = torch.cuda.Stream()
            s.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(s):
                for _ in range(3):
                    self._compute(self._x)
            torch.cuda.current_stream().wait_stream(s)
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph):
                self._y = self._compute(self._x)
        self._x.copy_(x)
        self._graph.replay()
        return self._y.clone()
