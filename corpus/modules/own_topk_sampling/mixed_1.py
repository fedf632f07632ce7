import torch
import triton
import triton.language as tl


@triton.jit
def pick_kernel(v_ptr, w_ptr, u_ptr, word_ptr, p_ptr, inv_t, K: tl.constexpr, KP: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, KP)
    ok = c < K
    v = tl.load(v_ptr + row * K + c, mask=ok, other=-float("inf")) * inv_t
    e = tl.exp(v - tl.max(v, 0))
    p = e / tl.sum(e, 0)
    cdf = tl.cumsum(p, 0)
    u = tl.load(u_ptr + row)
    at = tl.minimum(tl.sum(((cdf <= u) & ok).to(tl.int32), 0), K - 1)
    tl.store(word_ptr + row, tl.load(w_ptr + row * K + at))
    tl.store(p_ptr + row, tl.sum(tl.where(c == at, p, 0.0), 0))


def custom_kernel(data):
    logits, u, k, temperature = data
    v, w = torch.topk(logits, k, dim=1, sorted=True)
    rows = logits.shape[0]
    word = torch.empty(rows, device=logits.device, dtype=torch.int64)
    p = torch.empty(rows, device=logits.device)
    pick_kernel[(rows,)](v, w, u, word, p, 1.0 / temperature, K=k, KP=triton.next_power_of_2(k), num_warps=1)
    return word, p
