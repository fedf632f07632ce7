# presage: problem rmsnorm
import torch
import torch._dynamo
import torch.nn.functional as F

# Every size is compiled for itself; by default the ninth would fall back to eager.
torch._dynamo.config.recompile_limit = 64


@torch.compile(dynamic=False)
def rmsnorm(x, weight):
    return F.rms_norm(x, x.shape[-1:], weight, eps=1e-6)


def custom_kernel(data):
    return rmsnorm(*data)
