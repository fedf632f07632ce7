# presage: problem delta_rule_recurrent
# presage: tune BV = 8, 16, 4, 32, 64
# presage: tune WARPS = 1, 2, 4, 8
# presage: tune STAGES = 1, 2, 3
# presage: tune ONCE = 0, 1
# presage: where 128 * BV >= 256 * WARPS and (ONCE == 0 or STAGES != 3)
#
# A program keeps BV columns of a head's state and goes from token to token. ONCE computes both sums before the state
# changes: q S' = q S + (q . k) value.
import torch
import triton
import triton.language as tl


@triton.jit
def recur(
    q_ptr, k_ptr, v_ptr, beta_ptr, g_ptr, o_ptr, length, dk, dv, scale,
    BD: tl.constexpr, BV: tl.constexpr, ONCE: tl.constexpr, STAGES: tl.constexpr,
):
    head = tl.program_id(1).to(tl.int64)
    d = tl.arange(0, BD)
    j = tl.program_id(0) * BV + tl.arange(0, BV)
    state = tl.zeros([BD, BV], tl.float32)
    for t in tl.range(0, length, num_stages=STAGES):
        at = head * length + t
        q = tl.load(q_ptr + at * dk + d, mask=d < dk, other=0.0) * scale
        k = tl.load(k_ptr + at * dk + d, mask=d < dk, other=0.0)
        v = tl.load(v_ptr + at * dv + j, mask=j < dv, other=0.0)
        beta = tl.load(beta_ptr + at)
        state = state * tl.exp(tl.load(g_ptr + at))
        value = beta * (v - tl.sum(k[:, None] * state, axis=0))
        if ONCE:
            o = tl.sum(q[:, None] * state, axis=0) + tl.sum(q * k, axis=0) * value
            state += k[:, None] * value[None, :]
        else:
            state += k[:, None] * value[None, :]
            o = tl.sum(q[:, None] * state, axis=0)
        tl.store(o_ptr + at * dv + j, o, mask=j < dv)


def custom_kernel(data):
    q, k, v, beta, g = data
    (heads, length, dk), dv = k.shape, v.shape[2]
    o = torch.empty_like(v)
    recur[(triton.cdiv(dv, BV), heads)](
        q, k, v, beta, g, o, length, dk, dv, dk**-0.5,
        BD=triton.next_power_of_2(dk), BV=BV, ONCE=ONCE, STAGES=STAGES, num_warps=WARPS,
    )
    return o
