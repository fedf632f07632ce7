import torch


def custom_kernel(data):
    $arguments$, = data
    return $eager$
