import torch


def custom_kernel(data):
    logits, k = data
    # the order of the probabilities is the order of the logits, and the full sum cancels
    best, experts = logits.topk(k, dim=-1)
    return best.softmax(-1), experts
