import torch
import torch._dynamo
$torch_imports$

# Every size is compiled for itself; by default the ninth would fall back to eager.
torch._dynamo.config.recompile_limit = 64
$torch_helpers$


@torch.compile(dynamic=False)
def compute($torch_arguments$):
    $torch_body$


def custom_kernel(data):
    return compute(*data)
