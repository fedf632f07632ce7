"""Reading out: the probabilities of a few one-token answers after a question, from one forward pass for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from presage.llm.weights import Weights, all_prompt_ids, answer_ids, import_libraries

Floats = npt.NDArray[np.float64]

BATCH_TOKENS = 32_768
"""Tokens of a forward pass, padding included."""
_KEPT = 100_000
"""Questions whose answers are remembered, so that the same question has the same answer, to the last bit."""


class ReadOut:
    """A model that is asked for the probabilities of given answers."""

    def __init__(self, weights: Weights, answers: Sequence[str], batch_tokens: int = BATCH_TOKENS) -> None:
        self.weights = weights
        self._answers = answer_ids(weights.tokenizer, answers)
        self._batch_tokens = batch_tokens
        self._known: dict[tuple[int, ...], Floats] = {}

    def log_probabilities(self, questions: Sequence[Sequence[Mapping[str, str]]]) -> Floats:
        """Natural logarithms, shape (questions, answers), of each answer among all tokens that could come."""
        asked = [tuple(ids) for ids in all_prompt_ids(self.weights.tokenizer, questions)]
        if len(self._known) > _KEPT:
            self._known.clear()
        new = list(dict.fromkeys(ids for ids in asked if ids not in self._known))
        for batch in by_length([len(ids) for ids in new], self._batch_tokens):
            found = log_probabilities(self.weights.model, [new[i] for i in batch], self._answers)
            self._known.update(zip((new[i] for i in batch), found, strict=True))
        return np.array([self._known[ids] for ids in asked]).reshape(len(asked), len(self._answers))


def log_probabilities(model: Any, prompts: Sequence[Sequence[int]], answers: Sequence[int]) -> Floats:
    """The same of prompts as tokens, in one pass."""
    torch, _ = import_libraries()
    with torch.inference_mode():
        logits = last_logits(model, prompts)[:, 0]
        found = torch.log_softmax(logits.float(), -1)[:, list(answers)]
    return np.asarray(found.cpu().numpy(), dtype=np.float64)


def last_logits(model: Any, prompts: Sequence[Sequence[int]], last: int = 1) -> Any:
    """What the model says after the last tokens of each prompt: (prompts, last, vocabulary). Padding is on the left, so
    that all prompts end together."""
    torch, _ = import_libraries()
    longest = max(map(len, prompts))
    device = next(model.parameters()).device
    ids = torch.zeros((len(prompts), longest), dtype=torch.long)
    mask = torch.zeros((len(prompts), longest), dtype=torch.long)
    for row, prompt in enumerate(prompts):
        ids[row, longest - len(prompt) :] = torch.as_tensor(list(prompt))
        mask[row, longest - len(prompt) :] = 1
    places = (mask.cumsum(-1) - 1).clamp(min=0)
    told = {"input_ids": ids.to(device), "attention_mask": mask.to(device), "position_ids": places.to(device)}
    return model(**told, use_cache=False, logits_to_keep=last).logits


def by_length(lengths: Sequence[int], most_tokens: int) -> Iterator[list[int]]:
    """The numbers of prompts in batches of like length, which with their padding hold no more tokens than that; a
    prompt that is longer is a batch by itself.

    >>> list(by_length([5, 1, 4, 2], 8))
    [[1, 3], [2], [0]]
    """
    batch: list[int] = []
    for i in sorted(range(len(lengths)), key=lambda i: (lengths[i], i)):
        if batch and lengths[i] * (len(batch) + 1) > most_tokens:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch
