"""A pre-norm transformer block without dropout: attention of eight heads and an MLP, in float32."""

import torch
import torch.nn.functional as F


def reference(x, w_qkv, w_out, w_up, w_down, norm_1, norm_2):
    batch, length, width = x.shape
    h = F.layer_norm(x, (width,), norm_1)
    q, k, v = (h @ w_qkv).view(batch, length, 3, 8, width // 8).permute(2, 0, 3, 1, 4)
    attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    x = x + attended.transpose(1, 2).reshape(batch, length, width) @ w_out
    return x + F.gelu(F.layer_norm(x, (width,), norm_2) @ w_up) @ w_down


def inputs(batch, length, width):
    def weight(ins, outs):
        return torch.randn(ins, outs) / ins**0.5

    x = torch.randn(batch, length, width)
    norms = [1 + 0.1 * torch.randn(width) for _ in range(2)]
    return x, weight(width, 3 * width), weight(width, width), weight(width, 4 * width), weight(4 * width, width), *norms


cases = [{"batch": 8, "length": 512, "width": 512}]
tolerance = 3e-2
