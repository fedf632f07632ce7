# presage: problem gelu
# presage: tune ERF = library, exponential, quotient
# presage: tune BLOCK = 1024, 256, 512, 2048, 4096
# presage: tune WARPS = 4, 1, 2, 8
#
# ERF is the library's, or Abramowitz and Stegun 7.1.26, or a quotient of polynomials; the last two hold for all of
# float32, since erf(4) is 1 there.
import torch
import triton
import triton.language as tl


@triton.jit
def erf_exponential(z):
    t = 1.0 / (1.0 + 0.3275911 * z)
    p = 1.061405429 * t - 1.453152027
    p = p * t + 1.421413741
    p = p * t - 0.284496736
    p = p * t + 0.254829592
    return 1.0 - p * t * tl.exp(-z * z)


@triton.jit
def erf_quotient(z):
    s = z * z
    p = -2.72614225801306e-10 * s + 2.77068142495902e-08
    p = p * s - 2.10102402082508e-06
    p = p * s - 5.69250639462346e-05
    p = p * s - 7.34990630326855e-04
    p = p * s - 2.95459980854025e-03
    p = p * s - 1.60960333262415e-02
    q = -1.45660718464996e-05 * s - 2.13374055278905e-04
    q = q * s - 1.68282697438203e-03
    q = q * s - 7.37332916720468e-03
    q = q * s - 1.42647390514189e-02
    return z * p / q


@triton.jit
def gelu(x_ptr, y_ptr, n, FORM: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(x_ptr + at, mask=inside)
    if FORM == "library":
        y = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    else:
        size = tl.abs(x)
        z = tl.minimum(size * 0.7071067811865476, 4.0)
        if FORM == "exponential":
            y = 0.5 * (x + size * erf_exponential(z))
        else:
            y = 0.5 * (x + size * erf_quotient(z))
    tl.store(y_ptr + at, y, mask=inside)


def custom_kernel(data):
    (x,) = data
    y = torch.empty_like(x)
    n = x.numel()
    gelu[(triton.cdiv(n, BLOCK),)](x, y, n, FORM=ERF, BLOCK=BLOCK, num_warps=WARPS)
    return y
