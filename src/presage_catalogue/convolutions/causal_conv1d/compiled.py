# presage: problem causal_conv1d
import torch
import torch._dynamo
import torch.nn.functional as F

# cuDNN takes TF32 for float32 convolutions unless it is told not to.
torch.backends.cudnn.allow_tf32 = False

# Every size is compiled for itself; by default the ninth would fall back to eager.
torch._dynamo.config.recompile_limit = 64


@torch.compile(dynamic=False)
def causal_conv1d(x, weight):
    channels, width = weight.shape
    padded = F.pad(x, (width - 1, 0))
    return F.conv1d(padded, weight.view(channels, 1, width), groups=channels)


def custom_kernel(data):
    return causal_conv1d(*data)
