# presage: problem cross_entropy
import torch
import torch.nn.functional as F


def custom_kernel(data):
    logits, targets = data
    return F.cross_entropy(logits, targets, reduction="none")
