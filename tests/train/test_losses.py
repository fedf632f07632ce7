"""The losses of a read-out agree with the formula sheet, and an honest answer has the least."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs the train extra")
import torch

from presage import PresageError
from presage.core import scoring
from presage.llm.prompts import Prompt
from presage.llm.readout import by_length
from presage.train import checkpoint, readout, rewards, scores
from presage.train.questions import Question, spoken_answer
from presage.train.sft import Example, Training, first_difference, order, schedule


def drawn(n: int = 64) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.dirichlet(np.ones(9), size=n), rng.integers(0, 9, size=n)


@pytest.mark.parametrize(("kind", "formula"), [("brier", scoring.half_brier), ("rps", scoring.rps)])
def test_losses_are_those_of_the_formula_sheet(kind: str, formula) -> None:
    p, truth = drawn()
    found = readout.LOSSES[kind](torch.tensor(p), torch.tensor(truth)).numpy()
    works = truth > 0
    assert found[~works] == pytest.approx((1 - p[~works, 0]) ** 2)
    bins = p[works, 1:] / p[works, 1:].sum(axis=1, keepdims=True)
    assert np.mean(found[works] - p[works, 0] ** 2) == pytest.approx(formula(bins, truth[works] - 1))


def test_log_is_the_negative_log_likelihood() -> None:
    p, truth = drawn()
    assert readout.log(torch.tensor(p), torch.tensor(truth)).mean().item() == pytest.approx(scoring.nll(p, truth))


def test_the_logarithm_of_an_answer_that_seemed_impossible_has_a_gradient() -> None:
    logits = torch.zeros(1, 9)
    logits[0, 5] = 40.0
    logits.requires_grad_()
    readout.loss("log", torch.log_softmax(logits, 1), torch.tensor([2])).sum().backward()
    assert logits.grad[0, [2, 5]].tolist() == pytest.approx([-1, 1])


def test_scores_where_nothing_works_are_unknown() -> None:
    asked = [Question("p", "", "", "", "a", "k", 0, None, "")] * 3
    told = scores.score(drawn(3)[0], asked)
    assert told["questions"] == 3
    assert np.isnan(told["exact"])


@pytest.mark.parametrize("kind", readout.LOSSES)
def test_the_least_loss_on_average_is_the_honest_answer(kind: str) -> None:
    belief = torch.tensor(drawn(1)[0][0])
    logits = torch.zeros(1, 9, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([logits], lr=0.5, max_iter=400, line_search_fn="strong_wolfe", tolerance_change=1e-14)

    def expected() -> torch.Tensor:
        optimiser.zero_grad()
        said = torch.log_softmax(logits, 1).expand(9, 9)
        loss = belief @ readout.loss(kind, said, torch.arange(9))
        loss.backward()
        return loss

    optimiser.step(expected)
    assert torch.softmax(logits, 1)[0].detach().numpy() == pytest.approx(belief.numpy(), abs=2e-3)


def test_other_words_than_answers_cost_something() -> None:
    said = torch.log(torch.full((1, 9), 0.1))
    less = said - 3
    truth = torch.tensor([2])
    assert all(readout.loss(kind, less, truth) > readout.loss(kind, said, truth) for kind in readout.LOSSES)


def test_every_epoch_asks_everything_once_in_another_order() -> None:
    told = [order(20, step, 5, 3) for step in range(8)]
    epochs = [list(itertools.chain(*told[4 * epoch : 4 * epoch + 4])) for epoch in range(2)]
    assert all(sorted(epoch) == list(range(20)) for epoch in epochs)
    assert epochs[0] != epochs[1]
    assert order(20, 5, 5, 3) == epochs[1][5:10], "any step can be told alone"


def test_batches_hold_what_they_may() -> None:
    lengths = np.random.default_rng(1).integers(1, 90, size=50).tolist()
    batches = list(by_length(lengths, 100))
    assert sorted(itertools.chain(*batches)) == list(range(50))
    assert all(len(batch) * max(lengths[i] for i in batch) <= 100 for batch in batches)


def test_the_rate_rises_and_falls() -> None:
    rates = [schedule(step, 100, 0.1) for step in range(100)]
    assert max(rates) == rates[9] == 1
    assert rates[:10] == sorted(rates[:10])
    assert rates[10:] == sorted(rates[10:], reverse=True)


@pytest.mark.parametrize("truth", range(9))
def test_a_spoken_answer_is_right_with_any_confidence(truth: int) -> None:
    answers = {spoken_answer(truth, str(key)) for key in range(300)}
    for text in answers:
        told = json.loads(text)
        assert sum(told[f"p{k}"] for k in range(1, 9)) == pytest.approx(1)
        assert rewards.reward("correctness", text, truth) == 1
    peaks = {json.loads(text)[f"p{truth}" if truth else "p_fail"] for text in answers}
    assert len(peaks) == (5 if truth else 3)
    assert min(peaks) < 0.55 < 0.85 < max(peaks)


class Speaker(torch.nn.Module):
    """Says the same whatever it is asked: a table of logits by place."""

    def __init__(self, words: int, longest: int) -> None:
        super().__init__()
        self.table = torch.nn.Parameter(torch.randn(longest, words, generator=torch.Generator().manual_seed(0)))
        self.head = torch.nn.Identity()

    def get_output_embeddings(self) -> torch.nn.Module:
        return self.head

    def forward(self, input_ids: torch.Tensor, **_: object) -> SimpleNamespace:
        return SimpleNamespace(logits=self.head(self.table[: input_ids.shape[1]].expand(len(input_ids), -1, -1)))


def test_the_token_that_decides_counts_as_much_as_the_whole_answer() -> None:
    pytest.importorskip("transformers", reason="needs the train extra")
    model = Speaker(12, 9)
    training = object.__new__(Training)
    training.model, training._mode = model, "spoken"
    training._weights = SimpleNamespace(processor=None)
    answers = [(3, 4, 5, 6), (3, 4, 7, 6)]
    place = first_difference(answers)
    assert place == 2
    examples = [Example(Prompt((1, 2)), 0, answers[0], place), Example(Prompt((1, 2, 1)), 0, answers[1], place)]
    logs = model.table.log_softmax(-1)
    expected = 0.0
    for example in examples:
        start = len(example.prompt) - 1
        told = [-logs[start + i, token].item() for i, token in enumerate(example.answer)]
        expected += float(np.mean(told)) + told[place]
    assert training._loss(examples).item() == pytest.approx(expected, rel=1e-5)
    plain = [Example(each.prompt, 0, each.answer) for each in examples]
    one_by_one = sum(training._loss([each]).item() for each in plain)
    assert training._loss(plain).item() == pytest.approx(one_by_one, rel=1e-5), "padding changes nothing"


def test_a_full_disk_ends_a_training_in_words(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors", reason="needs the train extra")
    parameter = torch.nn.Parameter(torch.zeros(100_000))
    with pytest.raises(PresageError, match="cannot write"), checkpoint.written(tmp_path / checkpoint.FILE):
        raise safetensors.SafetensorError("I/O error: No space left on device (os error 28)")
    checkpoint.save(tmp_path, {"p": parameter}, torch.optim.AdamW([parameter]), {"step": 1})
    assert checkpoint.load(tmp_path, {"p": parameter}, torch.optim.AdamW([parameter])) == {"step": 1}
