import torch


def custom_kernel(data):
    $ins$, = data
    return $eager$
