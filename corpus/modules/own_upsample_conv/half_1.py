import torch
import torch.nn.functional as F


def custom_kernel(data):
    x, weight, bias = data
    x = x.half().to(memory_format=torch.channels_last)
    w = weight.half().to(memory_format=torch.channels_last)
    big = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
    return F.conv2d(big, w, bias.half(), padding=1).float().contiguous()
