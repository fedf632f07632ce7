# presage: problem batchnorm_inference
# presage: tune BLOCK = 1024, 256, 512, 2048, 4096
# presage: tune WARPS = 4, 1, 2, 8
# presage: tune PROGRAMS = 0, 1056
#
# A program per block of elements, each of which looks up its channel, or PROGRAMS of them that walk over the blocks.
import torch
import triton
import triton.language as tl


@triton.jit
def batchnorm(x_ptr, mean_ptr, variance_ptr, weight_ptr, bias_ptr, y_ptr, n, channels, size, BLOCK: tl.constexpr):
    for block in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
        at = block * BLOCK + tl.arange(0, BLOCK)
        inside = at < n
        c = at // size % channels
        x = tl.load(x_ptr + at, mask=inside)
        mean = tl.load(mean_ptr + c)
        scale = tl.load(weight_ptr + c) / tl.sqrt(tl.load(variance_ptr + c) + 1e-5)
        tl.store(y_ptr + at, (x - mean) * scale + tl.load(bias_ptr + c), mask=inside)


def custom_kernel(data):
    x, mean, variance, weight, bias = data
    y = torch.empty_like(x)
    _, channels, size = x.shape
    blocks = triton.cdiv(x.numel(), BLOCK)
    grid = (min(blocks, PROGRAMS) if PROGRAMS else blocks,)
    batchnorm[grid](x, mean, variance, weight, bias, y, x.numel(), channels, size, BLOCK=BLOCK, num_warps=WARPS)
    return y
