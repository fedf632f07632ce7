import torch
import triton
import triton.language as tl


@triton.jit
def shuffle(x_ptr, b_ptr, y_ptr, C, H, W, BLOCK: tl.constexpr):
    """Writes two rows of the output; C counts the channels of the output."""
    row = tl.program_id(0)
    i = row % H
    plane = row // H
    j = tl.arange(0, BLOCK)
    ok = j < 2 * W
    c = plane % C
    n = plane // C
    for r in tl.static_range(2):
        ch = c * 4 + r * 2 + j % 2
        v = tl.load(x_ptr + ((n * 4 * C + ch) * H + i) * W + j // 2, mask=ok, other=0.0)
        v += tl.load(b_ptr + ch, mask=ok, other=0.0)
        v = tl.minimum(tl.maximum(v, 0.0), 1.0)
        tl.store(y_ptr + (plane * 2 * H + 2 * i + r) * 2 * W + j, v, mask=ok)


def custom_kernel(data):
    x, bias = data
    N, C4, H, W = x.shape
    y = torch.empty((N, C4 // 4, 2 * H, 2 * W), device=x.device, dtype=x.dtype)
    shuffle[(N * (C4 // 4) * H,)](x, bias, y, C4 // 4, H, W, BLOCK=triton.next_power_of_2(2 * W), num_warps=2)
    return y
