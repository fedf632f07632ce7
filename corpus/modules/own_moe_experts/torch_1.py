import torch


def custom_kernel(data):
    x, weights, experts, matrices = data
    n = matrices.shape[0]
    out = torch.zeros_like(x)
    for i in range(n):
        token, slot = torch.where(experts == i)
        y = torch.mm(x[token], matrices[i])
        out.index_add_(0, token, y * weights[token, slot].unsqueeze(1))
    return out
