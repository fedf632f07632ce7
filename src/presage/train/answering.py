"""Generate and score several answers to each question, for reinforcement learning, without reading a question twice.

A question is ten times as long as an answer, so most of the work would be the same question again. Its keys and values
are computed once, and the answers are appended to copies of them. In learning, the gradients of all answers flow back
through the one question. And most of an answer is the form that all answers have: so the next tokens of a typical
answer are guessed, one pass scores the guess, and it is kept as far as the model draws the same tokens. Both are exact.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from presage.llm.weights import import_libraries

_GUESSED = 9
"""The tokens that are guessed for a pass. A field of an answer and its first digits have eight."""
_NEAR = 8
"""How far ahead in the typical answer a drawn token is looked for."""


def is_possible(model: Any) -> bool:
    """Whether this kind of model takes keys and values of a question, and positions."""
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    needed = {"past_key_values", "position_ids", "logits_to_keep"}
    return needed <= set(inspect.signature(type(base).forward).parameters)


def generating(model: Any, typical: Sequence[int]) -> Callable[..., Any]:
    """What does the same as `generate` of this model for questions that are padded on the left, where several are
    equal. typical: the tokens of an answer."""
    generate = model.generate

    def together(input_ids: Any, attention_mask: Any, generation_config: Any) -> Any:
        torch, _ = import_libraries()
        with torch.no_grad():
            found = _read_once(model, input_ids[:, :-1], attention_mask[:, :-1])
            if found is None or any(layer.is_sliding for layer in found.layers):  # a window counts wrong guesses, too
                return generate(input_ids=input_ids, attention_mask=attention_mask, generation_config=generation_config)
            answers = _draw(model, found, input_ids[:, -1].tolist(), attention_mask, generation_config, typical)
        longest = max(map(len, answers))
        rest = [[*answer, *[generation_config.pad_token_id] * (longest - len(answer))] for answer in answers]
        return torch.cat([input_ids, torch.tensor(rest, device=input_ids.device)], 1)

    return together


def _draw(
    model: Any, cache: Any, last: list[int], attention_mask: Any, settings: Any, typical: Sequence[int]
) -> list[list[int]]:
    """An answer for each row of the cache, which has all of its question but the last token."""
    torch, _ = import_libraries()
    ends = settings.eos_token_id if isinstance(settings.eos_token_id, list) else [settings.eos_token_id]
    answers: list[list[int]] = [[] for _ in last]
    places, hopes = [0] * len(last), [_GUESSED] * len(last)
    open_rows = list(range(len(last)))
    mask, position = attention_mask[:, :-1], attention_mask.sum(1, keepdim=True) - 1
    while open_rows:
        guesses = [list(typical[places[row] : places[row] + hopes[row]]) for row in open_rows]
        width = 1 + max(map(len, guesses))
        ids = torch.tensor(
            [
                [last[row], *guess, *[last[row]] * (width - 1 - len(guess))]
                for row, guess in zip(open_rows, guesses, strict=True)
            ],
            device=mask.device,
        )
        mask = torch.cat([mask, torch.ones_like(ids)], 1)
        logits = model(
            input_ids=ids, attention_mask=mask, position_ids=position + torch.arange(width, device=mask.device),
            past_key_values=cache, use_cache=True,
        ).logits  # fmt: skip
        drawn = _sample(torch, logits, settings).tolist()
        for at, (row, guess) in enumerate(zip(open_rows, guesses, strict=True)):
            right = _alike(drawn[at], guess)
            kept = _until(drawn[at][: right + 1], ends, settings.max_new_tokens - len(answers[row]))
            answers[row] += kept
            last[row] = kept[-1]
            places[row] = _place(typical, places[row] + right, kept[-1])
            hopes[row] = _GUESSED if right else 1  # a model that has not learned the form yet is not guessed in vain
            mask[at, mask.shape[1] - width + 1 + right :] = 0  # what was guessed wrong is not seen again
            position[at] += right + 1
        still = [
            at
            for at, row in enumerate(open_rows)
            if last[row] not in ends and len(answers[row]) < settings.max_new_tokens
        ]
        if len(still) < len(open_rows):
            chosen = torch.tensor(still, dtype=torch.long, device=mask.device)
            cache.batch_select_indices(chosen)
            mask, position, open_rows = mask[chosen], position[chosen], [open_rows[at] for at in still]
    return answers


def _alike(drawn: Sequence[int], guess: Sequence[int]) -> int:
    """How many tokens of the guess were drawn, too, before the first that was not.

    >>> _alike([5, 6, 7], [5, 8]), _alike([5, 6, 7], [5, 6])
    (1, 2)
    """
    wrong = (place for place, (one, other) in enumerate(zip(drawn, guess, strict=False)) if one != other)
    return next(wrong, len(guess))


def _sample(torch: Any, logits: Any, settings: Any) -> Any:
    """A token for each place."""
    if not settings.do_sample:
        return logits.argmax(-1)
    shares = (logits.float() / settings.temperature).softmax(-1)
    return torch.multinomial(shares.flatten(0, 1), 1).view(logits.shape[:2])


def _until(tokens: list[int], ends: Sequence[int], most: int) -> list[int]:
    """The tokens up to the first that ends an answer, at most so many."""
    end = next((n for n, token in enumerate(tokens) if token in ends), len(tokens))
    return tokens[: min(end + 1, most)]


def _place(typical: Sequence[int], place: int, token: int) -> int:
    """Where the typical answer goes on after this token, which was drawn at this place of it.

    >>> _place([5, 6, 7, 8], 1, 6), _place([5, 6, 7, 8], 1, 7), _place([5, 6, 7, 8], 1, 9)
    (2, 3, 2)
    """
    near = list(typical[place : place + _NEAR])
    return place + 1 + (near.index(token) if token in near else 0)


def log_probabilities(model: Any, input_ids: Any, attention_mask: Any, last: int) -> Any:
    """What TRL's trainer computes about the last tokens of each row, which are the answers: an output with
    `log_probs` and `entropy`, each of shape (rows, last). None if no question is there twice, or if the model keeps
    something other than keys and values."""
    question = input_ids.shape[1] - last - 1  # its last token is read with each answer, and predicts the first
    found = _read_once(model, input_ids[:, :question], attention_mask[:, :question])
    if found is None:
        return None
    ids, mask = input_ids[:, question:], attention_mask[:, question:]
    labels = ids.masked_fill(mask == 0, -100)
    labels[:, 0] = -100
    places = _positions(attention_mask)[:, question:]
    return model(
        input_ids=ids, attention_mask=attention_mask, position_ids=places, past_key_values=found, labels=labels,
        fused_lm_head=True,
    )  # fmt: skip


def _read_once(model: Any, ids: Any, mask: Any) -> Any:
    """The keys and values of each row's question, where equal ones are computed once; None if there are none equal."""
    torch, transformers = import_libraries()
    _, which = torch.unique(torch.cat([ids, mask], 1), dim=0, return_inverse=True)
    count = int(which.max()) + 1
    if count == len(ids) or not ids.shape[1]:
        return None
    first = torch.stack([(which == number).nonzero()[0, 0] for number in range(count)])
    found = model(
        input_ids=ids[first], attention_mask=mask[first], position_ids=_positions(mask[first]), use_cache=True,
        logits_to_keep=1,
    ).past_key_values  # fmt: skip
    kinds = (transformers.cache_utils.DynamicLayer, transformers.cache_utils.DynamicSlidingWindowLayer)
    if type(found) is not transformers.DynamicCache or any(type(layer) not in kinds for layer in found.layers):
        return None
    found.batch_select_indices(which)
    return found


def _positions(mask: Any) -> Any:
    """The position of each token without the padding on the left, as in `generate`."""
    return (mask.cumsum(1) - 1).clamp(min=0)
