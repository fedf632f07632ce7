import torch

# float32 products in float32: TF32 keeps only 10 bits of the mantissa. Sums of float16 products in float32, too.
torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False


def custom_kernel(data):
    $ins$, = data
    return $eager$
