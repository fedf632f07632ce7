# presage: problem layernorm
import torch
import torch._dynamo
import torch.nn.functional as F

# Every size is compiled for itself; by default the ninth would fall back to eager.
torch._dynamo.config.recompile_limit = 64


@torch.compile(dynamic=False)
def layernorm(x, weight, bias):
    return F.layer_norm(x, x.shape[-1:], weight, bias, eps=1e-5)


def custom_kernel(data):
    return layernorm(*data)
