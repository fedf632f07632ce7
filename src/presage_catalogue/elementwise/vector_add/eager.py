# presage: problem vector_add
import torch


def custom_kernel(data):
    x, y = data
    return x + y
