import torch
import triton
import triton.language as tl


@triton.jit
def gemm(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pid_m, pid_n = tl.program_id(0), tl.program_id(1)
    om = pid_m * BM + tl.arange(0, BM)
    on = pid_n * BN + tl.arange(0, BN)
    ok = tl.arange(0, BK)
    m_ok = om < M
    n_ok = on < N

    c = tl.zeros((BM, BN), tl.float32)
    for it in range(K // BK):
        kk = it * BK + ok
        at = tl.load(a_ptr + om[:, None] * K + kk[None, :], mask=m_ok[:, None], other=0.)
        bt = tl.load(b_ptr + kk[:, None] * N + on[None, :], mask=n_ok[None, :], other=0.)
        c += tl.dot(at, bt)
    tl.store(c_ptr + om[:, None] * N + on[None, :], c, mask=m_ok[:, None] & n_ok[None, :])


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        (M, K), N = A.shape, B.shape[1]
        C = A.new_empty(M, N)
        gemm[(triton.cdiv(M, 64), triton.cdiv(N, 64))](A, B, C, M, N, K, BM=64, BN=64, BK=64)
        return C
