"""A tiny vision model, trained with this trainer on questions that `presage-gui export` wrote, and used as a critic."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from presage import PresageError
from presage.cli.main import main
from presage.llm.prompts import padded, prompts
from presage.llm.readout import ReadOut
from presage.llm.weights import load
from presage.train import config, conversations, stages
from presage_gui.cli.main import main as gui

CONFIG = """\
model = "{model}"
mode = "{mode}"
precision = "fp32"
licence = "none"

[sft]
loss = "brier"
steps = {steps}
batch = 8
pass_tokens = 8192
learning_rate = 3e-3
lora_rank = {rank}
checkpoint_seconds = 0.0
"""
TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }}: {% for part in message['content'] %}"
    "{{ '<image>' if part['type'] == 'image' else part['text'] }}{% endfor %}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)


def exported(folder: Path, mode: str) -> Path:
    for split, most in (("train", "24"), ("validation", "12")):
        assert gui(["export", split, "--out", str(folder), "--mode", mode, "--most", most, "--bare"]) == 0
    return folder


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("cv2", reason="needs the extra gui")
    return exported(tmp_path_factory.mktemp("questions"), "readout")


@pytest.fixture(scope="module")
def sees(asked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a model that looks at 32 x 32 pixels and knows nothing. Its tokens are long."""
    for name in ("torch", "transformers", "accelerate", "peft"):
        pytest.importorskip(name, reason="needs the extra train")
    import tokenizers
    import torch
    import transformers

    raw = tokenizers.Tokenizer(tokenizers.models.BPE())
    raw.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    special = ["<pad>", "</s>", "<image>"]
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=1500, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    said = [each.messages for each in conversations.read(asked, "train")]
    raw.train_from_iterator([f"{system['content']} {user['content'][0]['text']}" for system, user in said], trainer)
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=raw, eos_token="</s>", pad_token="<pad>", extra_special_tokens={"image_token": "<image>"}
    )
    torch.manual_seed(0)
    seeing = transformers.CLIPVisionConfig(
        hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, image_size=32, patch_size=8
    )
    reading = transformers.LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=8192, eos_token_id=1, pad_token_id=0, bos_token_id=None,
    )  # fmt: skip
    model = transformers.LlavaForConditionalGeneration(
        transformers.LlavaConfig(
            vision_config=seeing, text_config=reading, image_token_index=2, vision_feature_layer=-1
        )
    )
    folder = tmp_path_factory.mktemp("sees")
    model.save_pretrained(folder)
    pixels = transformers.CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32})
    transformers.LlavaProcessor(
        pixels, tokenizer, patch_size=8, vision_feature_select_strategy="default", chat_template=TEMPLATE,
        image_token="<image>", num_additional_image_tokens=1,
    ).save_pretrained(folder)  # fmt: skip
    return folder


def written(folder: Path, model: Path, mode: str, rank: int = 0, steps: int = 12) -> str:
    file = folder / "vision.toml"
    file.write_text(CONFIG.format(model=model, mode=mode, rank=rank, steps=steps))
    return str(file)


def losses(folder: Path) -> list[float]:
    return [json.loads(line)["loss"] for line in (folder / "sft" / "log.jsonl").read_text().splitlines()]


def test_a_model_that_sees_is_read_out_trained_and_a_critic(
    sees: Path, asked: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    into, file = tmp_path / "model", written(tmp_path, sees, "readout")
    command = ["train", "llm", "--questions", str(asked), "--config", file, "--into", str(into), "--json"]
    assert main(command) == 0
    assert "sft/result/model.safetensors" in json.loads(capsys.readouterr().out)["files"]
    log = losses(into)
    assert len(log) == 12
    assert np.mean(log[-4:]) < np.mean(log[:4])
    card = (into / "README.md").read_text()
    assert "| auroc |" in card
    assert "24 of the train split, 12 of the validation split" in card
    assert main(command) == 0, "what is done is not done again"
    assert losses(into) == log

    from presage_gui.critics.vlm import Vlm
    from presage_gui.data.dataset import load as load_states

    state = next(iter(load_states("validation")))
    critic = Vlm(model=str(into))
    chances = [
        critic.check(state.goal, state.history, state.screen, each.step).probability
        for each in state.proposals
        if each.step
    ]
    assert all(0 < chance < 1 for chance in chances)
    assert len(set(chances)) > 1, "it sees where the step is marked"
    clicked = next(each.step for each in state.proposals if each.step and each.step.action.at and each.step.intent)
    told = [critic.check(state.goal, state.history, state.screen, step) for step in (clicked, clicked.bare)]
    assert [verdict.irreversible for verdict in told] == [False, True], "a digit does not say what can be undone"
    assert all(verdict.error is None for verdict in told), "nor what is wrong"

    def lacks_memory(*_: object) -> None:
        raise RuntimeError("out of memory\x1b[2J")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ReadOut, "log_probabilities", lacks_memory)
        failed = critic.check(state.goal, state.history, state.screen, clicked)
    assert failed.failed, "a person decides"
    assert failed.explanation == "the vision model failed: out of memory [2J"
    critic.close()


def test_an_answer_of_several_tokens_cannot_be_read_out(sees: Path) -> None:
    weights = load(str(sees), sees=True)
    with pytest.raises(PresageError, match="no one token for 'zebra fish'"):
        ReadOut(weights, ["0", "zebra fish"])
    with pytest.raises(PresageError, match="no one token for '0'"):
        ReadOut(weights, ["0", "0"])


def test_a_model_that_sees_learns_to_speak_with_an_adapter_and_is_merged(sees: Path, tmp_path: Path) -> None:
    questions, into = exported(tmp_path / "questions", "spoken"), tmp_path / "model"
    chosen = config.read(written(tmp_path, sees, "spoken", rank=4))
    stages.run_own(chosen, questions, into, say=str)
    log = losses(into)
    assert np.mean(log[-4:]) < np.mean(log[:4])

    from presage.train.merging import merge
    from presage_gui.critics.vlm_prompt import parse

    whole = load(str(merge(into, say=str)), sees=True)
    assert whole.processor.patch_size == 8
    for each in conversations.read(questions, "train"):
        assert parse(each.answer).probability in (0.05, 0.95)


def test_padding_changes_no_answer(sees: Path, asked: Path) -> None:
    """Each question alone is answered as in one pass with longer ones."""
    weights = load(str(sees), sees=True)
    found = [each.messages for each in conversations.read(asked, "validation")[:4]]
    together = ReadOut(weights, ["0", "1"]).log_probabilities(found)
    alone = [ReadOut(weights, ["0", "1"]).log_probabilities([each])[0] for each in found]
    assert len({len(each) for each in prompts(weights, found)}) > 1
    assert np.allclose(together, alone, atol=1e-4)


def test_unlike_pictures_are_padded_with_zeros() -> None:
    pytest.importorskip("transformers", reason="needs the extra train")
    torch = pytest.importorskip("torch")
    tiles = [
        {"pixel_values": torch.ones(1, 2, 3), "token_type_ids": torch.ones(1, 2)},
        {"pixel_values": torch.ones(1, 4, 3)},
    ]
    told = padded([[5, 6, 7], [8, 9]], tiles)
    assert told["pixel_values"].shape == (2, 4, 3)
    assert told["pixel_values"][0, 2:].sum() == 0
    assert told["token_type_ids"].tolist() == [[1, 1, 0], [0, 0, 0]]
    assert "position_ids" not in told


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 1"),
        ("[" * 100_000, "line 1"),
        ('{"messages": []}', "line 1"),
        ('{"messages": [{"role": "user", "content": "a"}]}', "the last message is not the assistant's"),
        ('{"messages": [{"role": "assistant", "content": "1"}]}', "nothing is asked"),
        ('{"messages": [{"role": "root", "content": "a"}, {"role": "assistant", "content": "1"}]}', "the role 'root'"),
        ('{"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "../x.png"}}]},'
         ' {"role": "assistant", "content": "1"}]}', "there is no picture ../x.png"),
        ('{"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://a/x.png"}}]},'
         ' {"role": "assistant", "content": "1"}]}', "nothing is fetched"),
        ("", "train.jsonl is empty"),
    ],
)  # fmt: skip
def test_bad_questions_are_told(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "train.jsonl").write_text(line + "\n")
    with pytest.raises(PresageError, match=message):
        conversations.read(tmp_path, "train")


def test_questions_that_fit_no_mode_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def write(split: str, answers: list[str]) -> None:
        lines = [
            {"messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": answer}]}
            for answer in answers
        ]
        (tmp_path / f"{split}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    begin = ["train", "llm", "--config", "tiny", "--mode", "readout", "--into", str(tmp_path / "model")]
    command = [*begin, "--questions", str(tmp_path)]
    assert main(command) == 2
    assert "a folder of questions has train.jsonl and validation.jsonl" in capsys.readouterr().err
    write("train", ["0"])
    write("validation", ["0"])
    assert main(command) == 2
    assert "there are 1 different answers" in capsys.readouterr().err
    write("train", ["0", "1"])
    write("validation", ["2"])
    assert main(command) == 2
    assert "the answer '2' of the validation split is nowhere in the train split" in capsys.readouterr().err
    assert main([*command, "--stage", "grpo"]) == 2
    assert "--stage is for questions made from recordings" in capsys.readouterr().err
