import torch
import torch._dynamo
import torch.nn.functional as F

# Every size is compiled for itself; by default the ninth would fall back to eager.
torch._dynamo.config.recompile_limit = 64


@torch.compile(dynamic=False)
def compute($ins$):
    return $eager$


def custom_kernel(data):
    return compute(*data)
