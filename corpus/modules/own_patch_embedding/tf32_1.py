import torch
import torch.nn.functional as F


def custom_kernel(data):
    x, weight, bias, position = data
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True
    D, _, P, _ = weight.shape
    patches = F.unfold(x, P, stride=P)
    y = torch.matmul(weight.view(D, -1), patches).transpose(1, 2)
    return (y + bias).add_(position)
