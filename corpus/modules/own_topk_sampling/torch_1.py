import torch


def custom_kernel(data):
    logits, u, k, temperature = data
    values, words = logits.topk(k, dim=-1)
    cdf = values.div_(temperature).softmax(-1)
    p = cdf
    cdf = cdf.cumsum(-1)
    pick = torch.searchsorted(cdf, u[:, None], right=True).clamp_(max=k - 1)
    return words.gather(1, pick)[:, 0], p.gather(1, pick)[:, 0]
