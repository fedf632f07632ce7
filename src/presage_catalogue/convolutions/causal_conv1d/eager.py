# presage: problem causal_conv1d
import torch
import torch.nn.functional as F

# cuDNN takes TF32 for float32 convolutions unless it is told not to.
torch.backends.cudnn.allow_tf32 = False


def custom_kernel(data):
    x, weight = data
    channels, width = weight.shape
    padded = F.pad(x, (width - 1, 0))
    return F.conv1d(padded, weight.view(channels, 1, width), groups=channels)
