"""Answers that share a question are those that each question alone would get, and teach the same."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs the train extra")
pytest.importorskip("trl", reason="needs the train extra")

import transformers  # noqa: E402
from trl.trainer.utils import add_fused_lm_head  # noqa: E402

from presage.llm.weights import load  # noqa: E402
from presage.train import answering  # noqa: E402

LENGTH, ANSWER, END = 20, 12, 1


@pytest.fixture
def model(tiny: Path):
    return load(str(tiny)).model


@pytest.fixture
def asked():
    """Three questions, two of them twice or more; one is shorter. And the answers to them."""
    torch.manual_seed(0)
    three, mask = torch.randint(2, 300, (3, LENGTH)), torch.ones((3, LENGTH), dtype=torch.long)
    three[1, :6], mask[1, :6] = 0, 0
    which = torch.tensor([0, 1, 0, 2, 1, 0])
    return three[which], mask[which]


def test_the_likeliest_answers_are_those_of_generate(model, asked) -> None:
    ids, mask = asked
    settings = transformers.GenerationConfig(
        max_new_tokens=ANSWER, do_sample=False, pad_token_id=0, eos_token_id=END, use_cache=True
    )
    given = {"input_ids": ids, "attention_mask": mask, "generation_config": settings}
    expected = model.generate(**given)
    passes: list[int] = []
    hook = model.register_forward_pre_hook(
        lambda _, __, named: passes.append(named["input_ids"].numel()), with_kwargs=True
    )
    found = answering.generating(model)(**given)
    hook.remove()
    assert torch.equal(found, expected)
    assert passes[:2] == [3 * (LENGTH - 1), len(ids)]  # each question is read once


def test_what_answers_teach_is_the_same(model, asked) -> None:
    questions, mask = asked
    answers, said = torch.randint(2, 300, (6, ANSWER)), torch.ones((6, ANSWER), dtype=torch.long)
    said[2, 7:] = 0
    ids, mask = torch.cat([questions, answers], 1), torch.cat([mask, said], 1)
    add_fused_lm_head(model, temperature=0.9, outputs=("log_probs", "entropy"))
    labels = ids.masked_fill(mask == 0, -100)
    labels[:, :-ANSWER] = -100
    plain = model(input_ids=ids, attention_mask=mask, labels=labels, fused_lm_head=True)
    shared = answering.log_probabilities(model, ids, mask, ANSWER)
    gradients = []
    for told in (plain, shared):
        model.zero_grad()
        (told.log_probs[:, -ANSWER:] * said * torch.arange(6)[:, None]).sum().backward()
        gradients.append([each.grad.clone() for each in model.parameters()])
    assert torch.allclose(plain.log_probs[:, -ANSWER:] * said, shared.log_probs * said, atol=1e-5)
    assert torch.allclose(plain.entropy[:, -ANSWER:] * said, shared.entropy * said, atol=1e-5)
    assert all(torch.allclose(one, other, atol=1e-4) for one, other in zip(*gradients, strict=True))


def test_questions_that_differ_are_left_to_the_model(model, asked) -> None:
    ids, mask = (each[[0, 1, 3]] for each in asked)
    assert answering.log_probabilities(model, ids, mask, 4) is None
