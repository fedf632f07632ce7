import torch
import torch.nn.functional as F


def custom_kernel(data):
    q, k, v, slopes = data
    L = q.shape[2]
    at = torch.arange(L, device=q.device, dtype=torch.float32)
    gap = at[None, :] - at[:, None]
    bias = (slopes[:, None, None] * gap).masked_fill_(gap > 0, -float("inf")).to(q.dtype)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=bias.unsqueeze(0).expand(q.shape[0], -1, -1, -1))
