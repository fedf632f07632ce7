import torch


def rope(x, c, s):
    half = x.shape[-1] // 2
    y = torch.empty_like(x)
    a, b = x[..., :half], x[..., half:]
    torch.mul(a, c, out=y[..., :half])
    y[..., :half].addcmul_(b, s, value=-1)
    torch.mul(b, c, out=y[..., half:])
    y[..., half:].addcmul_(a, s)
    return y


def custom_kernel(data):
    q, k, cos, sin = data
    half = q.shape[-1] // 2
    c, s = cos[:, :half].contiguous(), sin[:, :half].contiguous()
    return rope(q, c, s), rope(k, c, s)
