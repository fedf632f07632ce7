import torch
import torch.nn.functional as F


def custom_kernel(data):
    images, texts, temperature = data
    previous = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        logits = (F.normalize(images) / temperature) @ F.normalize(texts).t()
    finally:
        torch.set_float32_matmul_precision(previous)
    labels = torch.arange(logits.shape[0], device=logits.device)
    return 0.5 * (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t().contiguous(), labels))
