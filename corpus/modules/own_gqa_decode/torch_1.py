import torch
import torch.nn.functional as F


def custom_kernel(data):
    q, keys, values, lengths = data
    room = keys.shape[2]
    allowed = torch.arange(room, device=q.device)[None, :] < lengths[:, None]
    out = F.scaled_dot_product_attention(
        q.unsqueeze(2), keys, values, attn_mask=allowed[:, None, None, :], enable_gqa=True
    )
    return out.squeeze(2)
