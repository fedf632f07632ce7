"""Counts of the 256 grey levels of each image."""

import torch


def reference(images):
    count = images.shape[0]
    flat = images.reshape(count, -1).long() + 256 * torch.arange(count, device=images.device)[:, None]
    return torch.bincount(flat.flatten(), minlength=256 * count).view(count, 256).to(torch.int32)


def inputs(count, size):
    levels = 128 + 40 * torch.randn(count, size, size)
    return (levels.clamp(0, 255).to(torch.uint8),)


cases = [{"count": 64, "size": 720}]
