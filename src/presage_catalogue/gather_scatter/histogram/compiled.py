# presage: problem histogram
import torch
import torch._dynamo

# Every size is compiled for itself; by default the ninth would fall back to eager.
torch._dynamo.config.recompile_limit = 64


# torch.bincount's size depends on values, which the compiler cannot follow; adding ones into zeros it can.
@torch.compile(dynamic=False)
def histogram(x, bins):
    ones = torch.ones_like(x, dtype=torch.int64)
    return torch.zeros(bins, dtype=torch.int64, device=x.device).scatter_add_(0, x.long(), ones)


def custom_kernel(data):
    return histogram(*data)
