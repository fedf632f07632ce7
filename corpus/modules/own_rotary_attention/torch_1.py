import torch
import torch.nn.functional as F


def custom_kernel(data):
    q, k, v, cos, sin = data
    turn = torch.complex(cos, sin)
    half = q.shape[-1] // 2
    qk = torch.stack((q, k)).float()
    z = torch.complex(qk[..., :half].contiguous(), qk[..., half:].contiguous()) * turn
    qk = torch.cat((z.real, z.imag), -1).half()
    return F.scaled_dot_product_attention(qk[0], qk[1], v, is_causal=True)
