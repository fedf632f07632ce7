import torch


def custom_kernel(data):
    (x,) = data
    # doubling: after step k each place holds the log-sum-exp of the 2^k values before it
    s = x.clone()
    step = 1
    while step < x.shape[-1]:
        s = torch.cat((s[:, :step], torch.logaddexp(s[:, step:], s[:, :-step])), dim=-1)
        step *= 2
    return torch.exp(x - s)
