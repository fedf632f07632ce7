"""The distillation loss: Kullback–Leibler divergence of teacher and student at a temperature, times its square."""

import torch
import torch.nn.functional as F


def reference(student, teacher, temperature):
    log_q = F.log_softmax(student / temperature, dim=-1)
    log_p = F.log_softmax(teacher / temperature, dim=-1)
    return F.kl_div(log_q, log_p, reduction="batchmean", log_target=True) * temperature**2


def inputs(rows, words, temperature):
    teacher = 3 * torch.randn(rows, words)
    return teacher + torch.randn(rows, words), teacher, temperature


cases = [{"rows": 2048, "words": 32000, "temperature": 2.0}]
