import torch
import triton
import triton.language as tl


@triton.jit
def silu_mul(gu_ptr, h_ptr, hidden, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < hidden
    g = tl.load(gu_ptr + row * 2 * hidden + cols, mask=mask, other=0.0).to(tl.float32)
    u = tl.load(gu_ptr + row * 2 * hidden + hidden + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(h_ptr + row * hidden + cols, (g / (1.0 + tl.exp(-g)) * u).to(tl.float16), mask=mask)


def custom_kernel(data):
    x, w_gate, w_up, w_down = data
    hidden = w_gate.shape[0]
    # one large GEMM for both projections
    gu = torch.matmul(x, torch.cat((w_gate, w_up), 0).t())
    h = torch.empty((x.shape[0], hidden), device=x.device, dtype=x.dtype)
    silu_mul[(x.shape[0], triton.cdiv(hidden, 1024))](gu, h, hidden, BLOCK=1024, num_warps=4)
    return torch.matmul(h, w_down.t())
