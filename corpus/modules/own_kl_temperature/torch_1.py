import torch


def custom_kernel(data):
    student, teacher, temperature = data
    p = torch.softmax(teacher / temperature, dim=-1)
    gap = (teacher - student).mul_(p).sum(-1) / temperature
    lse_t = torch.logsumexp(teacher / temperature, dim=-1)
    lse_s = torch.logsumexp(student / temperature, dim=-1)
    return (gap - lse_t + lse_s).mean() * temperature * temperature
