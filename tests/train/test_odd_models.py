"""Models that are damaged or unlike most: each is refused in words, or trained and asked in a form that it accepts."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from presage import PresageError
from presage.forecasters import llm_question
from presage.forecasters.llm import sample_question
from presage.forecasters.llm_readout import TOO_LONG, LocalReadOut
from presage.llm import prompts
from presage.llm.prompts import Prompt
from presage.llm.readout import ReadOut
from presage.llm.server import WeightsServer
from presage.llm.weights import Description, load, load_tokenizer
from presage.train import config, grpo, merging, sft, stages
from presage.train.sft import Example

REFUSES_SYSTEM = """\
{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}
{%- for each in messages %}<{{ each['role'] }}>{{ each['content'] }}{% endfor %}<model>"""


def changed(**values: object) -> Callable[[Path], None]:
    """Change settings in config.json."""

    def change(folder: Path) -> None:
        file = folder / "config.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | values))

    return change


def cut(folder: Path) -> None:
    """Half of a download."""
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def fewer_words(folder: Path) -> None:
    import transformers

    small = transformers.LlamaConfig(
        vocab_size=100, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2
    )
    transformers.LlamaForCausalLM(small).save_pretrained(folder)


@pytest.fixture
def odd(tiny: Path, tmp_path: Path):
    """odd(change): the folder of the tiny model, changed."""

    def make(change: Callable[[Path], object]) -> Path:
        folder = Path(shutil.copytree(tiny, tmp_path / "odd"))
        change(folder)
        return folder

    return make


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (cut, "metadata"),
        (changed(num_hidden_layers=4), "it lacks 18 tensors of its model, such as model.layers.2"),
        (changed(hidden_size=32), "of other sizes than its config.json says"),
        (changed(hidden_size="wide"), "expected int, got str"),
        (fewer_words, r"its tokenizer has \d+ tokens, and its model 100"),
        (lambda folder: (folder / "tokenizer.json").unlink(), "tokenizer"),
    ],
)
def test_a_damaged_folder_is_refused_in_words(odd, change, told: str) -> None:
    with pytest.raises(PresageError, match=f"cannot load .*: .*{told}"):
        load(str(odd(change)))


def test_an_adapter_that_is_cut_is_refused_in_words(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text('{"peft_type": "LORA", "task_type": "CAUSAL_LM"}')
    (tmp_path / "adapter_model.safetensors").write_bytes(b"12345678")
    with pytest.raises(PresageError, match="does not fit the model"):
        load(str(tiny), tmp_path)


def test_an_adapter_of_a_deeper_model_is_refused(tiny: Path, tmp_path: Path) -> None:
    """What is for its other layers was left out silently."""
    loaded = load(str(tiny))
    sft.write_result(sft.with_lora(loaded.model, 2, 0), loaded, tmp_path / "adapter")
    load(str(tiny), tmp_path / "adapter")
    shallow = Path(shutil.copytree(tiny, tmp_path / "shallow"))
    changed(num_hidden_layers=1)(shallow)
    with pytest.raises(PresageError, match="it is also for 14 tensors that the model lacks, such as base_model"):
        load(str(shallow), tmp_path / "adapter")


def test_a_template_that_refuses_a_system_message_gets_it_from_the_user(odd) -> None:
    folder = odd(lambda folder: (folder / "chat_template.jinja").write_text(REFUSES_SYSTEM))
    tokenizer = load_tokenizer(str(folder))
    asked = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
    assert prompts.prompt_text(tokenizer, asked) == "<user>Be brief.\n\nHello<model>"
    question = SimpleNamespace(text="Hello", truth=1)
    (only,) = grpo.row(tokenizer, question)["prompt"]
    assert only == {"role": "user", "content": f"{llm_question.system('spoken')}\n\nHello"}
    with pytest.raises(PresageError, match=r"refuses a conversation: System role not supported"):
        prompts.prompt_text(tokenizer, asked[:1])


def test_what_is_longer_than_the_context_is_not_asked(odd) -> None:
    folder = odd(changed(max_position_embeddings=20))
    loaded = load(str(folder))
    short, long = ([{"role": "user", "content": "a" * count}] for count in (2, 200))
    told = ReadOut(loaded, llm_question.ANSWERS).log_probabilities([long, short])
    assert np.isnan(told).any(axis=1).tolist() == [True, False]
    task, candidate = sample_question()
    (prediction,) = LocalReadOut(str(folder)).forecast(task, [candidate])
    assert (prediction.forecast, prediction.notes) == (None, (TOO_LONG,))
    with WeightsServer(loaded) as server, pytest.raises(Exception, match="exceed the context, 20"):
        server._check({"messages": [{"role": "user", "content": "a" * 200}], "max_tokens": 1})


def test_what_is_longer_than_the_context_is_not_learned() -> None:
    examples = [Example(Prompt(tuple(range(n))), 0, ()) for n in (3, 30, 4)]
    said: list[str] = []
    assert [len(each) for each in sft.fitting(examples, 10, said.append)] == [3, 4]
    assert said == ["sft: 1 of 3 questions are left out: they have more than 10 tokens"]
    with pytest.raises(PresageError, match="every question has more tokens than a context of 2"):
        sft.fitting(examples, 2, said.append)


def test_a_model_that_suits_not_is_refused_before_the_questions_are_made(tiny, small, tmp_path: Path) -> None:
    assert tiny.exists(), "else what it takes is not installed"
    chosen = config.Config(str(tmp_path / "none"))
    with pytest.raises(PresageError, match="there is no model"):
        stages.run(chosen, [small], tmp_path / "into", say=str)
    assert not (tmp_path / "into" / "questions").exists()
    with pytest.raises(PresageError, match="has no eos_token"):
        sft.check_ends(SimpleNamespace(eos_token_id=None))


def test_an_adapter_without_safetensors_is_refused_and_no_pickle_is_read(tiny: Path, tmp_path: Path) -> None:
    loaded = load(str(tiny))
    sft.write_result(sft.with_lora(loaded.model, 2, 0), loaded, tmp_path / "adapter")
    (tmp_path / "adapter" / "adapter_model.safetensors").rename(tmp_path / "adapter" / "adapter_model.bin")
    with pytest.raises(PresageError, match=r"no folder of an adapter: it has no adapter_model\.safetensors"):
        load(str(tiny), tmp_path / "adapter")


def test_where_the_base_has_gone_the_file_that_names_it_is_told(tmp_path: Path) -> None:
    Description(str(tmp_path / "gone"), adapter="sft/result").write(tmp_path)
    with pytest.raises(PresageError, match=r"was trained from .*gone, which is not there; .* base in .*model\.json"):
        load(str(tmp_path))


def packed(tiny: Path, folder: Path) -> Path:
    """A small model of the kind of gpt-oss, with its experts in MXFP4."""
    import torch
    import transformers
    from safetensors.torch import load_file, save_file

    tokenizer = load_tokenizer(str(tiny))
    small = transformers.GptOssConfig(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=1, head_dim=16, num_local_experts=2, num_experts_per_tok=1, eos_token_id=1, pad_token_id=0,
        bos_token_id=None, rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
    )  # fmt: skip
    transformers.GptOssForCausalLM(small).to(torch.bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    whole = {}
    for name, each in load_file(folder / "model.safetensors").items():
        if name.endswith(("gate_up_proj", "down_proj")):
            experts, inputs, outputs = each.shape
            blocks = torch.randint(256, (experts, outputs, inputs // 32, 16), dtype=torch.uint8)
            whole |= {f"{name}_blocks": blocks, f"{name}_scales": torch.full(blocks.shape[:3], 120, dtype=torch.uint8)}
        else:
            whole[name] = each
    save_file(whole, folder / "model.safetensors", metadata={"format": "pt"})
    changed(quantization_config={"quant_method": "mxfp4"})(folder)
    return folder


def test_weights_in_mxfp4_are_unpacked_trained_and_merged(tiny: Path, tmp_path: Path, monkeypatch) -> None:
    """Whether or not the package is there with which transformers leaves them packed."""
    from transformers.quantizers import quantizer_mxfp4

    monkeypatch.setattr(quantizer_mxfp4, "is_kernels_available", lambda *_: True)
    base = packed(tiny, tmp_path / "base")
    loaded = load(str(base), precision="fp32", trainable=True)
    sft.write_result(sft.with_lora(loaded.model, 2, 0), loaded, tmp_path / "model" / "adapter")
    Description(str(base), adapter="adapter").write(tmp_path / "model")
    merged, plain = (
        load(str(each)).model.float().state_dict() for each in (merging.merge(tmp_path / "model", str), base)
    )
    assert merged.keys() == plain.keys()
    assert all(merged[name].numpy() == pytest.approx(each.numpy(), rel=0.01) for name, each in plain.items())
