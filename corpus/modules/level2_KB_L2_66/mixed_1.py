import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def mean_softmax_kernel(x_ptr, o_ptr, N, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    v = tl.load(x_ptr + pid * N + cols, mask=cols < N, other=0.0)
    mean = tl.sum(v, axis=0) / N
    e = tl.exp(mean - mean)
    tl.store(o_ptr + pid, e / e)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, dropout_p):
        super(ModelNew, self).__init__()
        self.matmul = nn.Linear(in_features, out_features)
        self.dropout = nn.Dropout(dropout_p)

    def forward(self, x):
        y = self.dropout(self.matmul(x))
        out = torch.empty(y.shape[0], 1, device=y.device, dtype=y.dtype)
        mean_softmax_kernel[(y.shape[0],)](y, out, y.shape[1], BLOCK=64, num_warps=2)
        return out
