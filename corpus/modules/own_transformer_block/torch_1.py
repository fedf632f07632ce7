import torch
import torch.nn.functional as F


def custom_kernel(data):
    x, w_qkv, w_out, w_up, w_down, norm_1, norm_2 = data
    B, L, D = x.shape
    flat = x.view(-1, D)
    # the norms' weights go into the matrices that follow
    qkv = torch.mm(F.layer_norm(flat, (D,)), norm_1[:, None] * w_qkv).view(B, L, 3, 8, D // 8)
    q, k, v = qkv.unbind(2)
    a = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True)
    flat = torch.addmm(flat, a.transpose(1, 2).reshape(-1, D), w_out)
    h = F.gelu(torch.mm(F.layer_norm(flat, (D,)), norm_2[:, None] * w_up))
    return torch.addmm(flat, h, w_down).view(B, L, D)
