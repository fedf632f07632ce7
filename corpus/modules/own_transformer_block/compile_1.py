import torch
import torch.nn.functional as F


class Block(torch.nn.Module):
    def forward(self, x, w_qkv, w_out, w_up, w_down, norm_1, norm_2):
        B, L, D = x.shape
        h = F.layer_norm(x, (D,), norm_1)
        q, k, v = (h @ w_qkv).view(B, L, 3, 8, D // 8).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + a.transpose(1, 2).reshape(B, L, D) @ w_out
        return x + F.gelu(F.layer_norm(x, (D,), norm_2) @ w_up) @ w_down


block = torch.compile(Block().eval())


def custom_kernel(data):
    with torch.no_grad():
        return block(*data)
