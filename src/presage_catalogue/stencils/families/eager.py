import torch
import torch.nn.functional as F

# cuDNN takes TF32 for float32 convolutions unless it is told not to.
torch.backends.cudnn.allow_tf32 = False


def compute($ins$):
    $eager$


def custom_kernel(data):
    $ins$, = data
    return compute($ins$)
