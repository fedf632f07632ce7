import torch
import torch.nn as nn
import torch.nn.functional as F


class ModelNew(nn.Module):
    def __init__(self, input_size, hidden_size, scale_factor, clamp_min, clamp_max):
        super().__init__()
        self.matmul = nn.Linear(input_size, hidden_size)
        self.scale_factor = scale_factor
        self.clamp_min = clamp_min
        self.clamp_max = clamp_max

    def forward(self, x):
        a = 2.0 * self.scale_factor
        h = torch.addmm(self.matmul.bias, x, self.matmul.weight.t(), beta=a, alpha=a)
        h = h.clamp_(self.clamp_min, self.clamp_max)
        # the values are bounded by the clamp: exp is safe without the running maximum
        z = h.exp_().sum(dim=1, keepdim=True).log_()
        return z * F.mish(z)
