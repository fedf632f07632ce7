import torch
import torch.nn.functional as F


def custom_kernel(data):
    $ins$, = data
    return $eager$
