import torch


def custom_kernel(data):
    cache_k, cache_v, k, v, positions = data
    out_k, out_v = cache_k.clone(), cache_v.clone()
    b = torch.arange(k.shape[0], device=k.device)[:, None]
    out_k[b, :, positions] = k.transpose(1, 2)
    out_v[b, :, positions] = v.transpose(1, 2)
    return out_k, out_v
