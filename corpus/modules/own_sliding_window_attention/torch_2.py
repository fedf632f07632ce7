import torch
import torch.nn.functional as F


def custom_kernel(data):
    q, k, v, window = data
    L = q.shape[-2]
    ones = torch.ones(L, L, dtype=torch.bool, device=q.device)
    band = ones.tril() & ones.triu(-window)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=band)
