# presage: problem delta_rule_recurrent
import torch
import torch._dynamo

# Every size is compiled for itself; by default the ninth would fall back to eager.
torch._dynamo.config.recompile_limit = 64


@torch.compile(dynamic=False)
def step(state, q, k, v, beta, g):
    state = state * torch.exp(g)[:, None, None]
    value = beta[:, None, None] * (v[:, None, :] - (k[:, :, None] * state).sum(1, keepdim=True))
    state = state + k[:, :, None] * value
    return state, (q[:, :, None] * state).sum(1) * q.shape[-1] ** -0.5


def custom_kernel(data):
    q, k, v, beta, g = data
    state = torch.zeros((k.shape[0], k.shape[2], v.shape[2]), dtype=v.dtype, device=v.device)
    o = torch.empty_like(v)
    for t in range(k.shape[1]):
        state, o[:, t] = step(state, *(x[:, t].contiguous() for x in (q, k, v, beta, g)))
    return o
