import torch
import triton
import triton.language as tl


@triton.jit
def tall_skinny_kernel(x_ptr, y_ptr, out_ptr, rows, LEFT: tl.constexpr, RIGHT: tl.constexpr, BLOCK_R: tl.constexpr,
                       BLOCK_N: tl.constexpr, CHUNK: tl.constexpr):
    pid_r = tl.program_id(0)
    pid_n = tl.program_id(1)
    offs_l = tl.arange(0, LEFT)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((LEFT, BLOCK_N), dtype=tl.float32)
    for i in range(CHUNK // BLOCK_R):
        offs_r = pid_r * CHUNK + i * BLOCK_R + tl.arange(0, BLOCK_R)
        live = offs_r < rows
        x = tl.load(x_ptr + offs_r[:, None] * LEFT + offs_l[None, :], mask=live[:, None], other=0.0)
        y = tl.load(y_ptr + offs_r[:, None] * RIGHT + offs_n[None, :], mask=live[:, None], other=0.0)
        acc += tl.dot(tl.trans(x), y, allow_tf32=False)
    tl.atomic_add(out_ptr + offs_l[:, None] * RIGHT + offs_n[None, :], acc)


def custom_kernel(data):
    x, y = data
    rows, left = x.shape
    right = y.shape[1]
    out = torch.empty(left, right, device=x.device, dtype=torch.float32)
    grid = (triton.cdiv(rows, 2048), right // 32)
    tall_skinny_kernel[grid](x, y, out, rows, LEFT=left, RIGHT=right, BLOCK_R=64, BLOCK_N=32, CHUNK=2048)
    return out
