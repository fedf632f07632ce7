import torch


def custom_kernel(data):
    """Inputs of all steps at once; only the recurrence is a loop, in place."""
    x, dt, a, b, c, skip = data
    decay = torch.exp(dt.unsqueeze(-1) * a)
    feed = (dt * x).unsqueeze(-1) * b.unsqueeze(2)
    for t in range(1, x.shape[1]):
        feed[:, t].addcmul_(decay[:, t], feed[:, t - 1])
    return torch.einsum("blcn,bln->blc", feed, c) + skip * x
