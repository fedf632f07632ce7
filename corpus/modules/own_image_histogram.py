"""Counts of the 256 grey levels of each image."""

import torch


def reference(images):
    levels = images.flatten(1).long()
    counts = torch.zeros(images.shape[0], 256, device=images.device, dtype=torch.int32)
    return counts.scatter_add(1, levels, torch.ones_like(levels, dtype=torch.int32))


def inputs(count, size):
    levels = 128 + 40 * torch.randn(count, size, size)
    return (levels.clamp(0, 255).to(torch.uint8),)


cases = [{"count": 64, "size": 720}]
