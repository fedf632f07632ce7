import torch
$torch_imports$
$torch_helpers$


def custom_kernel(data):
    $torch_arguments$, = data
    $torch_body$
