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


@pytest.mark.parametrize("typical", ["as drawn", "nothing in common"])
def test_the_likeliest_answers_are_those_of_generate(model, asked, typical: str) -> None:
    ids, mask = asked
    settings = transformers.GenerationConfig(
        max_new_tokens=ANSWER, do_sample=False, pad_token_id=0, eos_token_id=END, use_cache=True
    )
    expected = model.generate(input_ids=ids, attention_mask=mask, generation_config=settings)
    guess = expected[0, LENGTH:].tolist() if typical == "as drawn" else [299] * ANSWER
    passes = []
    handle = model.register_forward_pre_hook(lambda *given: passes.append(given))
    found = answering.generating(model, guess)(ids, mask, settings)
    handle.remove()
    assert torch.equal(found, expected)
    assert len(passes) <= 1 + ANSWER


def test_answers_are_drawn_as_often_as_they_are_likely(model, asked) -> None:
    """Also where they are guessed."""
    ids, mask = (each[:1].expand(2000, -1) for each in asked)
    settings = transformers.GenerationConfig(
        max_new_tokens=2, do_sample=True, temperature=0.1, pad_token_id=0, eos_token_id=END
    )
    with torch.no_grad():
        shares = (model(ids[:1], attention_mask=mask[:1]).logits[0, -1] / settings.temperature).softmax(-1)
    first = int(shares.argmax())
    with torch.no_grad():
        after = torch.cat([ids[:1], torch.tensor([[first]])], 1)
        then = (model(after).logits[0, -1] / settings.temperature).softmax(-1)
    torch.manual_seed(1)
    drawn = answering.generating(model, [first, int(then.argmax())])(ids, mask, settings)[:, LENGTH:]
    began = drawn[:, 0] == first
    assert began.float().mean() == pytest.approx(float(shares.max()), abs=0.04)
    assert (drawn[began, 1] == then.argmax()).float().mean() == pytest.approx(float(then.max()), abs=0.06)


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
