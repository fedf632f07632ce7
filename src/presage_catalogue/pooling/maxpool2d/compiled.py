# presage: problem maxpool2d
import torch
import torch._dynamo
import torch.nn.functional as F

# Every size is compiled for itself; by default the ninth would fall back to eager.
torch._dynamo.config.recompile_limit = 64


@torch.compile(dynamic=False)
def maxpool2d(x, window, stride):
    return F.max_pool2d(x, window, stride)


def custom_kernel(data):
    return maxpool2d(*data)
