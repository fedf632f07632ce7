import torch

# float32 products in float32: TF32 keeps only 10 bits of the mantissa.
torch.backends.cuda.matmul.allow_tf32 = False


def custom_kernel(data):
    $ins$ = data
    $mask$
    return $eager$
