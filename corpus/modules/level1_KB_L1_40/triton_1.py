import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def ln_partial(x_ptr, part_ptr, D, n_parts, CHUNK: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    p = tl.program_id(1)
    acc = tl.zeros((BLOCK,), tl.float32)
    acc2 = tl.zeros((BLOCK,), tl.float32)
    for i in range(0, CHUNK, BLOCK):
        o = p * CHUNK + i + tl.arange(0, BLOCK)
        v = tl.load(x_ptr + row * D + o, mask=o < D, other=0.0)
        acc += v
        acc2 += v * v
    tl.store(part_ptr + (row * n_parts + p) * 2, tl.sum(acc, 0))
    tl.store(part_ptr + (row * n_parts + p) * 2 + 1, tl.sum(acc2, 0))


@triton.jit
def ln_apply(x_ptr, y_ptr, w_ptr, b_ptr, part_ptr, D, n_parts, eps, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    k = tl.arange(0, PARTS)
    s = tl.sum(tl.load(part_ptr + (row * n_parts + k) * 2, mask=k < n_parts, other=0.0), 0)
    q = tl.sum(tl.load(part_ptr + (row * n_parts + k) * 2 + 1, mask=k < n_parts, other=0.0), 0)
    mean = s / D
    rstd = tl.rsqrt(q / D - mean * mean + eps)
    o = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    m = o < D
    x = tl.load(x_ptr + row * D + o, mask=m)
    w = tl.load(w_ptr + o, mask=m)
    b = tl.load(b_ptr + o, mask=m)
    tl.store(y_ptr + row * D + o, (x - mean) * rstd * w + b, mask=m)


class ModelNew(nn.Module):
    def __init__(self, normalized_shape: tuple):
        super(ModelNew, self).__init__()
        self.ln = nn.LayerNorm(normalized_shape=normalized_shape)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        D = self.ln.weight.numel()
        rows = x.numel() // D
        CHUNK, BLOCK = 65536, 4096
        n_parts = triton.cdiv(D, CHUNK)
        part = torch.empty(rows, n_parts, 2, device=x.device, dtype=torch.float32)
        y = torch.empty_like(x)
        ln_partial[(rows, n_parts)](x, part, D, n_parts, CHUNK=CHUNK, BLOCK=BLOCK, num_warps=8)
        ln_apply[(rows, triton.cdiv(D, BLOCK))](x, y, self.ln.weight, self.ln.bias, part, D, n_parts, self.ln.eps,
                                                PARTS=triton.next_power_of_2(n_parts), BLOCK=BLOCK, num_warps=8)
        return y
