import torch


def custom_kernel(data):
    logits, targets = data
    keep = targets != -100
    total = torch.zeros((), device=logits.device)
    for part, t, ok in zip(logits.chunk(8), targets.chunk(8), keep.chunk(8)):
        part = part.float()
        lse = torch.logsumexp(part, dim=1)
        hit = part.gather(1, t.clamp(min=0).unsqueeze(1)).squeeze(1)
        total = total + torch.where(ok, lse - hit, torch.zeros_like(lse)).sum()
    return total / keep.sum()
