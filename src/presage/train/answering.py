"""Generate and score several answers to each question, for reinforcement learning, without reading a question twice.

A question is ten times as long as an answer, so most of the work would be the same question again. Its keys and values
are computed once, and the answers are appended to copies of them. In learning, the gradients of all answers flow back
through the one question.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from presage.llm.weights import import_libraries


def is_possible(model: Any) -> bool:
    """Whether this kind of model takes keys and values of a question, and positions."""
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    needed = {"past_key_values", "position_ids", "logits_to_keep"}
    return needed <= set(inspect.signature(type(base).forward).parameters)


def generating(model: Any) -> Callable[..., Any]:
    """What does the same as `generate` of this model for questions that are padded on the left, where several are
    equal."""
    generate = model.generate

    def together(input_ids: Any, attention_mask: Any, **settings: Any) -> Any:
        torch, _ = import_libraries()
        with torch.no_grad():
            found = _read_once(model, input_ids[:, :-1], attention_mask[:, :-1])
        known = {} if found is None else {"past_key_values": found}
        return generate(input_ids=input_ids, attention_mask=attention_mask, **settings, **known)

    return together


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
