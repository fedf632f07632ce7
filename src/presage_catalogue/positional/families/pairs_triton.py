# presage: tune BLOCK = 512, 128, 256, 1024, 4096
# presage: tune WARPS = 4, 1, 8
# presage: tune PROGRAMS = 0, 264, 2112
# presage: tune TRIG = float32, float16
# presage: where TRIG == "float32" or (PROGRAMS == 0 and WARPS == 4)
#
# A program turns BLOCK neighbouring pairs, or PROGRAMS of them walk over all. TRIG is the type of the cosines and sines.
import torch
import triton
import triton.language as tl


@triton.jit
def turn(x_ptr, cosines_ptr, sines_ptr, y_ptr, seq, heads, half_dim, pairs, TRIG: tl.constexpr, BLOCK: tl.constexpr):
    for block in range(tl.program_id(0), tl.cdiv(pairs, BLOCK), tl.num_programs(0)):
        i = block * BLOCK + tl.arange(0, BLOCK)
        inside = i < pairs
        k = i % half_dim
        row = i // half_dim
        angle = row // heads % seq * half_dim + k
        cosine = tl.load(cosines_ptr + angle, mask=inside)
        sine = tl.load(sines_ptr + angle, mask=inside)
        if TRIG == "float16":
            cosine = cosine.to(tl.float16)
            sine = sine.to(tl.float16)
        first = row * 2 * half_dim + $first$
        second = row * 2 * half_dim + $second$
        a = tl.load(x_ptr + first, mask=inside).to(tl.float32)
        b = tl.load(x_ptr + second, mask=inside).to(tl.float32)
        tl.store(y_ptr + first, a * cosine - b * sine, mask=inside)
        tl.store(y_ptr + second, b * cosine + a * sine, mask=inside)


def custom_kernel(data):
    x, cosines, sines = data
    batch, seq, heads, dim = x.shape
    y = torch.empty_like(x)
    pairs = x.numel() // 2
    blocks = triton.cdiv(pairs, BLOCK)
    grid = (min(blocks, PROGRAMS) if PROGRAMS else blocks,)
    turn[grid](x, cosines, sines, y, seq, heads, dim // 2, pairs, TRIG=TRIG, BLOCK=BLOCK, num_warps=WARPS)
    return y
