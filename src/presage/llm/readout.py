"""Read out a model: the probabilities of a few one-token answers to each question, from one forward pass."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from presage.llm.prompts import Messages, Prompt, answer_ids, beside, padded, prompts
from presage.llm.weights import Weights, import_libraries

Floats = npt.NDArray[np.float64]

BATCH_TOKENS = 32_768
"""The most tokens of a forward pass, padding included."""
_one_pass = threading.Lock()
"""Allows one forward pass at a time: during a pass the model has a hook that would affect passes of other threads."""
_KEPT = 100_000
"""Size of the answer cache, in questions. It makes answers to the same question equal to the last bit."""


class ReadOut:
    """Asks a model for the probabilities of given answers."""

    def __init__(self, weights: Weights, answers: Sequence[str], batch_tokens: int = BATCH_TOKENS) -> None:
        self.weights = weights
        self._answers = answer_ids(weights.tokenizer, answers)
        self._batch_tokens = batch_tokens
        self._known: dict[Prompt, Floats] = {}

    def log_probabilities(self, questions: Sequence[Messages]) -> Floats:
        """The natural log-probability of each answer among all tokens, shape (questions, answers). NaN for a question
        that is longer than the model's context."""
        asked = prompts(self.weights, questions)
        if len(self._known) > _KEPT:
            self._known.clear()
        new = []
        for each in dict.fromkeys(each for each in asked if each not in self._known):
            if len(each) <= self.weights.context:
                new.append(each)
            else:
                self._known[each] = np.full(len(self._answers), np.nan)
        for batch in by_length([len(each) for each in new], self._batch_tokens):
            found = self._pass([new[i] for i in batch])
            self._known.update(zip((new[i] for i in batch), found, strict=True))
        return np.array([self._known[each] for each in asked]).reshape(len(asked), len(self._answers))

    def _pass(self, asked: Sequence[Prompt]) -> Floats:
        torch, _ = import_libraries()
        with torch.inference_mode():
            besides = [beside(self.weights, each) for each in asked]
            logits = last_logits(self.weights.model, [each.ids for each in asked], besides=besides)[:, 0]
            found = torch.log_softmax(logits.float(), -1)[:, self._answers]
        return np.asarray(found.cpu().numpy(), dtype=np.float64)


def last_logits(
    model: Any, rows: Sequence[Sequence[int]], last: int = 1, besides: Sequence[Mapping[str, Any]] = ()
) -> Any:
    """The logits after the last tokens of each row, shape (rows, last, vocabulary).

    Rows are padded on the right, where causal attention does not look, so that attention needs no mask and uses its
    fastest kernel. A hook selects each row's own last tokens before the output layer.
    """
    torch, _ = import_libraries()
    weight = next(model.parameters())
    told = {
        name: value.to(weight.device, weight.dtype if value.is_floating_point() else None)
        for name, value in padded(rows, besides).items()
    }
    ends = torch.tensor([len(row) for row in rows], device=weight.device)[:, None]
    places = (ends - last + torch.arange(last, device=weight.device)).clamp(min=0)

    def pick(_: Any, given: tuple[Any, ...]) -> tuple[Any, ...]:
        hidden, *others = given
        return (hidden.gather(1, places[..., None].expand(-1, -1, hidden.shape[-1])), *others)

    with _one_pass:
        hook = getattr(model, "module", model).get_output_embeddings().register_forward_pre_hook(pick)
        try:
            return model(**told, use_cache=False).logits
        finally:
            hook.remove()


def by_length(lengths: Sequence[int], most_tokens: int) -> Iterator[list[int]]:
    """Batches of indices of prompts of similar length, each with at most `most_tokens` tokens including padding. A
    longer prompt is a batch by itself.

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
