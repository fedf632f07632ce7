import torch


def custom_kernel(data):
    start, column, value, dense = data
    products = dense.index_select(0, column).mul_(value.unsqueeze(1))
    return torch.segment_reduce(products, "sum", offsets=start, axis=0)
