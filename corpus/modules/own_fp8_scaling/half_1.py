import torch


def custom_kernel(data):
    (x,) = data
    rows, width = x.shape
    h = x.half().view(rows, -1, 128)
    scale = h.abs().amax(-1, keepdim=True).float().clamp_(min=1e-12).div_(448.0)
    y = (h * (1.0 / scale)).clamp_(-448.0, 448.0)
    return y.view(rows, width).half(), scale.squeeze(-1)
