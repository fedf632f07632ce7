"""benchmarks/many_adapters.py computes for each training what its model and adapter would compute alone."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

if importlib.util.find_spec("peft") is None:
    pytest.skip("needs the train extra", allow_module_level=True)

torch: Any
peft: Any
transformers: Any
TRAININGS, WORDS, END = 3, 50, 1


@pytest.fixture(scope="module")
def many() -> Iterator[Any]:
    """The module. What it needs takes seconds to import, which collecting the tests does not need."""
    global torch, peft, transformers
    import peft
    import torch
    import transformers

    sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
    import many_adapters

    yield many_adapters
    sys.path.pop(0)


def adapted() -> Any:
    torch.manual_seed(0)
    settings = transformers.Qwen2Config(
        vocab_size=WORDS, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64, tie_word_embeddings=True,
    )  # fmt: skip
    chosen = peft.LoraConfig(r=4, lora_alpha=8, target_modules="all-linear", task_type="CAUSAL_LM")
    model = peft.get_peft_model(transformers.Qwen2ForCausalLM(settings), chosen)
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.3)
    return model


def change(adapters: Any) -> None:
    """Give each training another adapter."""
    torch.manual_seed(1)
    with torch.no_grad():
        for each in adapters.parameters:
            each.add_(0.2 * torch.randn_like(each))


def alone(adapters: Any, training: int) -> Any:
    """A model with the adapter of one training, made by peft."""
    model = adapted()
    layers = [each for each in model.modules() if hasattr(each, "lora_A")]
    with torch.no_grad():
        for layer, mine in zip(layers, adapters.layers, strict=True):
            layer.lora_A["default"].weight.copy_(mine.a[training])
            layer.lora_B["default"].weight.copy_(mine.b[training])
    return model


def said_alone(model: Any, prompt: list[int], answer: list[int]) -> Any:
    logits = model(input_ids=torch.tensor([prompt + answer])).logits[0, len(prompt) - 1 : -1]
    return logits.log_softmax(-1).gather(-1, torch.tensor(answer)[:, None])[:, 0]


PROMPTS = [[5, 6, 7, 8, 9], [10, 11, 12], [13, 14, 15, 16]]
ANSWERS = [[[20, 21, END], [22, END]], [[23, 24, 25, END], [END]], [[26, END], [27, 28, 29, 30]]]
WEIGHTS = [[0.5, -0.5], [1.0, -2.0], [0.0, 3.0]]


def test_answers_that_share_a_prompt_are_as_likely_as_alone(many: Any) -> None:
    adapters = many.ManyAdapters(adapted(), TRAININGS)
    change(adapters)
    logs, mask = adapters.log_probabilities(PROMPTS, ANSWERS)
    weights = torch.tensor(WEIGHTS)
    loss = -(weights[..., None] * logs * mask).sum()
    loss.backward()
    for training in range(TRAININGS):
        model, expected = alone(adapters, training), 0.0
        for number, answer in enumerate(ANSWERS[training]):
            found = said_alone(model, PROMPTS[training], answer)
            assert torch.allclose(logs[training, number][mask[training, number]], found, atol=1e-5)
            expected = expected - weights[training, number] * found.sum()
        expected.backward()  # type: ignore[attr-defined]
        layers = [each for each in model.modules() if hasattr(each, "lora_A")]
        for layer, mine in zip(layers, adapters.layers, strict=True):
            assert torch.allclose(layer.lora_A["default"].weight.grad, mine.a.grad[training], atol=1e-5)
            assert torch.allclose(layer.lora_B["default"].weight.grad, mine.b.grad[training], atol=1e-5)


def test_gradients_are_clipped_for_each_training(many: Any) -> None:
    adapters = many.ManyAdapters(adapted(), TRAININGS)
    for each in adapters.parameters:
        each.grad = torch.ones_like(each) * torch.tensor([1e-4, 1.0, 3.0]).view(-1, 1, 1)
    size = sum(each[0].numel() for each in adapters.parameters) ** 0.5
    norms = adapters.clip(1.0)
    assert torch.allclose(norms, torch.tensor([1e-4, 1.0, 3.0]) * size)
    after = torch.stack([each.grad.flatten(1).pow(2).sum(1) for each in adapters.parameters]).sum(0).sqrt()
    assert torch.allclose(after, torch.tensor([1e-4 * size, 1.0, 1.0]), rtol=1e-4)


@pytest.mark.parametrize("each", [1, 3])
def test_the_likeliest_words_are_those_of_each_model_alone(
    many: Any, each: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(many, "drawn", lambda logits, temperature: logits.argmax(-1))
    adapters = many.ManyAdapters(adapted(), TRAININGS)
    change(adapters)
    asked = [[prompt, prompt[::-1]] for prompt in PROMPTS]
    speaker = many.Speaker(adapters, 2, each, 8, 6)
    for _ in range(2):  # what was said before does not matter
        found = speaker.speak(asked, END, at_once=1)
        for training, row in enumerate(asked):
            model = alone(adapters, training).eval()
            for number, prompt in enumerate(row):
                said: list[int] = []
                while len(said) < 6 and END not in said:
                    said.append(int(model(input_ids=torch.tensor([prompt + said])).logits[0, -1].argmax()))
                assert found[training][number] == [said] * each
        change(adapters)
