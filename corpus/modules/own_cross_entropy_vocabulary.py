"""Mean cross entropy over a vocabulary of 128256 words; targets of -100 are ignored."""

import torch
import torch.nn.functional as F


def reference(logits, targets):
    return F.cross_entropy(logits.float(), targets, ignore_index=-100)


def inputs(rows, words):
    logits = (4 * torch.randn(rows, words)).to(torch.bfloat16)
    targets = torch.randint(0, words, (rows,))
    return logits, torch.where(torch.rand(rows) < 0.2, -100, targets)


cases = [{"rows": 1024, "words": 128256}]
