# presage: problem moe_gate
# presage: tune ROWS = 16, 4, 32, 64, 1
# presage: tune WARPS = 4, 1, 2, 8
# presage: tune SOFTMAX = 0, 1
# presage: tune PACKED = 0, 1, 2
# presage: where ROWS * 64 >= 32 * WARPS and (PACKED != 2 or (SOFTMAX == 0 and ROWS != 1))
#
# A program takes ROWS tokens with all of their experts. SOFTMAX computes all probabilities first. PACKED = 1 finds value
# and place by two reductions each, 0 with the place as a second result, and 2 orders numbers whose lowest bits are the place.
import torch
import triton
import triton.language as tl


@triton.jit
def best_of(x, e, E: tl.constexpr, PACKED: tl.constexpr):
    if PACKED == 0:
        value, place = tl.max(x, axis=1, return_indices=True)
    elif PACKED == 1:
        value = tl.max(x, axis=1)
        place = tl.min(tl.where(x == value[:, None], e, E), axis=1)
    else:
        bits = x.to(tl.int32, bitcast=True)
        order = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
        packed = tl.max((order & -256) | e, axis=1)
        place = packed & 255
        value = tl.max(tl.where(e == place[:, None], x, -float("inf")), axis=1)
    return value, place


@triton.jit
def gate(
    logits_ptr, weights_ptr, chosen_ptr, tokens, experts,
    ROWS: tl.constexpr, E: tl.constexpr, SOFTMAX: tl.constexpr, PACKED: tl.constexpr,
):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    e = tl.arange(0, E)[None, :]
    inside = (row[:, None] < tokens) & (e < experts)
    x = tl.load(logits_ptr + row[:, None].to(tl.int64) * experts + e, mask=inside, other=-float("inf"))
    if SOFTMAX:
        x = tl.exp(x - tl.maximum(tl.max(x, axis=1), -3.0e38)[:, None])
        x = tl.where(inside, x / tl.sum(x, axis=1)[:, None], -1.0)
    a, i = best_of(x, e, E, PACKED)
    b, j = best_of(tl.where(e == i[:, None], -float("inf"), x), e, E, PACKED)
    if SOFTMAX:
        p = a / (a + b)
        q = b / (a + b)
    else:
        ratio = tl.exp(b - a)
        p = 1.0 / (1.0 + ratio)
        q = ratio / (1.0 + ratio)
    tl.store(weights_ptr + 2 * row, p, mask=row < tokens)
    tl.store(weights_ptr + 2 * row + 1, q, mask=row < tokens)
    tl.store(chosen_ptr + 2 * row, i.to(tl.int32), mask=row < tokens)
    tl.store(chosen_ptr + 2 * row + 1, j.to(tl.int32), mask=row < tokens)


def custom_kernel(data):
    (logits,) = data
    tokens, experts = logits.shape
    weights = torch.empty((tokens, 2), dtype=logits.dtype, device=logits.device)
    chosen = torch.empty((tokens, 2), dtype=torch.int32, device=logits.device)
    gate[(triton.cdiv(tokens, ROWS),)](
        logits, weights, chosen, tokens, experts,
        ROWS=ROWS, E=triton.next_power_of_2(experts), SOFTMAX=SOFTMAX, PACKED=PACKED, num_warps=WARPS,
    )
    return weights, chosen
