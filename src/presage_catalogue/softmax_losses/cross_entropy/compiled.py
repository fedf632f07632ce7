# presage: problem cross_entropy
import torch
import torch._dynamo
import torch.nn.functional as F

# Every size is compiled for itself; by default the ninth would fall back to eager.
torch._dynamo.config.recompile_limit = 64


@torch.compile(dynamic=False)
def cross_entropy(logits, targets):
    return F.cross_entropy(logits, targets, reduction="none")


def custom_kernel(data):
    return cross_entropy(*data)
