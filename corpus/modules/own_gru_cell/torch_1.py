import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, h, w_ih, w_hh, b_ih, b_hh):
        return torch.gru_cell(x, h, w_ih, w_hh, b_ih, b_hh)
