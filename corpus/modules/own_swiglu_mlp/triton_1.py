import torch
import triton
import triton.language as tl


@triton.jit
def gate_up_kernel(x_ptr, g_ptr, u_ptr, h_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
                   GROUP: tl.constexpr):
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(M, BM)
    tiles_n = tl.cdiv(N, BN)
    per_group = GROUP * tiles_n
    first = (pid // per_group) * GROUP
    size = min(tiles_m - first, GROUP)
    pm = first + (pid % per_group) % size
    pn = (pid % per_group) // size
    rm = pm * BM + tl.arange(0, BM)
    rn = pn * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    gate = tl.zeros((BM, BN), dtype=tl.float32)
    up = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        x = tl.load(x_ptr + rm[:, None] * K + (k + rk)[None, :], mask=(rm < M)[:, None], other=0.0)
        g = tl.load(g_ptr + rn[None, :] * K + (k + rk)[:, None], mask=(rn < N)[None, :], other=0.0)
        u = tl.load(u_ptr + rn[None, :] * K + (k + rk)[:, None], mask=(rn < N)[None, :], other=0.0)
        gate = tl.dot(x, g, gate)
        up = tl.dot(x, u, up)
    h = gate * tl.sigmoid(gate) * up
    tl.store(h_ptr + rm[:, None] * N + rn[None, :], h.to(tl.float16), mask=(rm < M)[:, None] & (rn < N)[None, :])


def custom_kernel(data):
    x, w_gate, w_up, w_down = data
    M, K = x.shape
    N = w_gate.shape[0]
    h = torch.empty((M, N), device=x.device, dtype=x.dtype)
    BM, BN = 128, 64
    gate_up_kernel[(triton.cdiv(M, BM) * triton.cdiv(N, BN),)](
        x, w_gate, w_up, h, M, N, K, BM=BM, BN=BN, BK=64, GROUP=8, num_warps=8, num_stages=3
    )
    return torch.mm(h, w_down.t())
