import torch


def custom_kernel(data):
    """Keeps the integers as they are and scales partial products of 128 inputs."""
    x, w, s = data
    M, K = x.shape
    N, G = s.shape
    xs = x.view(M, G, 128).transpose(0, 1)
    ws = w.view(N, G, 128).permute(1, 2, 0).to(torch.float16)
    partial = torch.bmm(xs, ws)
    return (partial.float() * s.t()[:, None, :].float()).sum(0).half()
