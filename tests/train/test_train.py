"""Training from a recording to a forecast: each stage alone, killed and continued, and what it makes used."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from presage import PresageError
from presage.cli.main import main
from presage.llm.weights import load
from presage.train import config, questions, sft, stages

CONFIG = """\
model = "{model}"
mode = "{mode}"
precision = "fp32"
licence = "none"

[questions]
per_kernel = 3

[sft]
steps = 20
batch = 8
pass_tokens = 8192
learning_rate = 5e-3
lora_rank = {rank}
checkpoint_seconds = 0.0

[grpo]
steps = 16
questions = 8
answers = 4
tokens = 12
learning_rate = 1e-3
checkpoint_steps = 8
answers_at_once = 32
"""


@pytest.fixture
def written(tmp_path: Path, tiny: Path):
    """written(mode, rank): a configuration's file."""

    def write(mode: str = "readout", rank: int = 4) -> str:
        file = tmp_path / f"{mode}{rank}.toml"
        file.write_text(CONFIG.format(model=tiny, mode=mode, rank=rank))
        return str(file)

    return write


def test_a_model_that_is_read_out_is_trained_and_forecasts(
    written, small, tmp_path: Path, losses, capsys: pytest.CaptureFixture[str]
) -> None:
    into = tmp_path / "model"
    command = ["train", "llm", "--config", written(), "--recording", str(small.path), "--into", str(into), "--json"]
    assert main(command) == 0
    told = json.loads(capsys.readouterr().out)
    assert {"README.md", "model.json", "llm.toml", "sft/result/adapter_model.safetensors"} <= set(told["files"])
    log = losses(into / "sft")
    assert len(log) == 20
    assert np.mean(log[-5:]) < np.mean(log[:5])
    assert "| validation split | before recalibration | after recalibration |" in (into / "README.md").read_text()
    assert main(command) == 0, "what is done is not done again"
    assert losses(into / "sft") == log
    capsys.readouterr()
    ask = ["forecast", "sum", "rows.c", "--target", "cpu", "--forecaster", f"llm:model={into}", "--json"]
    assert main(ask) == 0
    (forecast,) = json.loads(capsys.readouterr().out)["forecasts"]
    assert sum(each["probability"] for each in forecast["forecast"]["bins"]) == pytest.approx(1)


class KilledError(BaseException):
    """As good as SIGKILL: nothing of ours catches it."""


@pytest.mark.parametrize("instant", ["before", "after"])
def test_a_training_that_is_killed_goes_on_to_the_same_end(
    written, small, tmp_path: Path, losses, monkeypatch: pytest.MonkeyPatch, instant: str
) -> None:
    """Cut while the seventh checkpoint is being put in its place; then compared with one that was not cut."""
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    chosen = config.read(written("readout", 0), sft__steps=10)
    stages.run(chosen, [small], whole, say=str)
    calls, replace = [], os.replace

    def dies(part, place) -> None:
        if str(place).endswith("checkpoint.safetensors"):
            calls.append(place)
            if instant == "after" or len(calls) != 7:
                replace(part, place)
            if len(calls) == 7:
                raise KilledError
        else:
            replace(part, place)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", dies)
        with pytest.raises(KilledError):
            stages.run(chosen, [small], cut, say=str)
    told: list[str] = []
    stages.run(chosen, [small], cut, say=told.append)
    assert any(f"going on at step {7 if instant == 'after' else 6} of 10" in line for line in told)
    assert losses(cut / "sft") == pytest.approx(losses(whole / "sft"), rel=1e-5)
    facts = [json.loads((folder / "facts.json").read_text())["scores"] for folder in (whole, cut)]
    assert facts[0]["before recalibration"]["rps"] == pytest.approx(facts[1]["before recalibration"]["rps"], rel=1e-4)


def test_a_model_that_speaks_learns_the_form_and_then_earns_more(written, small, tmp_path: Path, losses) -> None:
    pytest.importorskip("trl", reason="needs the train extra")
    pytest.importorskip("peft", reason="needs the train extra")
    into, chosen = tmp_path / "model", config.read(written("spoken", 0), sft__steps=60)
    stages.run(chosen, [small], into, say=str)
    rewards = losses(into / "grpo", "reward")
    assert len(rewards) == 16
    assert np.mean(rewards[-6:]) > np.mean(rewards[:6]), rewards
    assert (into / "grpo/result/model.safetensors").exists()
    (into / "grpo/result/done").unlink()
    stages.run(config.read(written("spoken", 0), sft__steps=60), [small], into, ["grpo"], say=str)
    assert losses(into / "grpo", "reward") == rewards, "goes on from the last checkpoint, which is the end"


def test_stages_alone_and_other_settings(written, small, tmp_path: Path) -> None:
    into = tmp_path / "model"
    chosen = config.read(written())
    with pytest.raises(PresageError, match="--stage questions"):
        stages.run(chosen, [small], into, ["sft"])
    stages.run(chosen, [small], into, ["questions"])
    there = {file: file.stat().st_mtime_ns for file in (into / "questions").iterdir()}
    stages.run(chosen, [small], into, ["questions"])
    assert {file: file.stat().st_mtime_ns for file in (into / "questions").iterdir()} == there
    with pytest.raises(PresageError, match="other settings"):
        stages.run(config.read(written(), questions__per_kernel=1), [small], into, ["questions"])
    with pytest.raises(PresageError, match="read out has no stage grpo"):
        stages.run(chosen, [small], into, ["grpo"])


def test_questions_keep_splits_mix_anchors_and_hold_failures(written, small, tmp_path: Path) -> None:
    questions.make(config.read(written()), [small], tmp_path, str)
    learned = questions.read(tmp_path, "train")
    assert {each.problem for each in learned} == {"vector_add", "gelu", "relu"}
    assert {each.problem for each in questions.read(tmp_path, "validation")} == {"sum"}
    assert all(len({q.anchor for q in learned if q.problem == problem}) > 2 for problem in ("gelu", "relu"))
    assert {each.truth == 0 for each in learned} == {True, False}
    assert all((each.log2_speedup is None) == (each.truth == 0) for each in learned)
    assert all(each.kernel != each.anchor for each in learned)
    assert any("# Measured" in each.text for each in learned)
    few, more = questions.read(tmp_path, "train", 5), questions.read(tmp_path, "train", 9)
    assert more[:5] == few
    with pytest.raises(PresageError, match="no questions of the test_op split"):
        questions.read(tmp_path, "test_op")


def test_layers_are_compiled_and_nothing_else(tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch", reason="needs the train extra")
    compiled = []
    monkeypatch.setattr(torch.nn.Module, "compile", lambda self, **options: compiled.append((type(self), options)))
    model = sft.with_lora(load(str(tiny)).model, 4, 0)
    sft.compile_layers(model)
    assert [kind.__name__ for kind, _ in compiled] == ["LlamaDecoderLayer"] * 2
    assert all(options == {"dynamic": True} for _, options in compiled), "one for rows of any length"
