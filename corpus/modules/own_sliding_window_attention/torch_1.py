import math

import torch


def custom_kernel(data):
    """Blocks of `window` queries see their own block of keys and the one before."""
    q, k, v, window = data
    B, H, L, D = q.shape
    n = L // window
    qb = q.view(B, H, n, window, D)
    pad = torch.zeros(B, H, window, D, device=q.device, dtype=q.dtype)
    kb = torch.cat((pad, k), 2).unfold(2, 2 * window, window)
    vb = torch.cat((pad, v), 2).unfold(2, 2 * window, window)
    scores = torch.matmul(qb, kb).float() / math.sqrt(D)
    i = torch.arange(window, device=q.device)[:, None] + window
    j = torch.arange(2 * window, device=q.device)[None, :]
    mask = ((i - j) >= 0) & ((i - j) < window)
    block = torch.arange(n, device=q.device)[:, None, None]
    mask = mask[None] & ((block > 0) | (j[None] >= window))
    p = torch.softmax(scores.masked_fill(~mask, -float("inf")), -1).to(q.dtype)
    return torch.matmul(p, vb.transpose(-1, -2)).reshape(B, H, L, D)
