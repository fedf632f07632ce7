import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, kernel_size, scale_factor):
        super().__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.max_pool = nn.MaxPool1d(kernel_size)
        self.scale_factor = scale_factor
        self.k = kernel_size

    def forward(self, x):
        y = torch.addmm(self.matmul.bias, x, self.matmul.weight.t())
        n = (y.shape[1] // self.k) * self.k
        y = y[:, :n].view(x.shape[0], -1, self.k) if n == y.shape[1] else y[:, :n].reshape(x.shape[0], -1, self.k)
        return y.amax(dim=2).sum(dim=1).mul_(self.scale_factor)
