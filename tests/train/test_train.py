"""Training from a recording to a forecast: each stage alone, killed and continued, and what it makes used."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from presage import PresageError
from presage.cli.main import main
from presage.train import config, questions, stages

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
steps = 8
questions = 2
answers = 4
tokens = 150
learning_rate = 2e-3
checkpoint_steps = 2
answers_at_once = 8
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


def test_a_killed_training_goes_on_to_the_same_end(written, small, tmp_path: Path, losses) -> None:
    """Cut at the moment a checkpoint has been written, in a process of its own; then compared with one that was not."""
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    file = written("readout", 0)
    assert main(["train", "llm", "--config", file, "--recording", str(small.path), "--into", str(whole)]) == 0
    command = [sys.executable, "-m", "presage", "train", "llm", "--config", file, "--recording", str(small.path)]
    child = subprocess.Popen([*command, "--into", str(cut)], stdout=subprocess.DEVNULL, start_new_session=True)
    checkpoint = cut / "sft" / "checkpoint.safetensors"
    while not checkpoint.exists() and child.poll() is None:
        time.sleep(0.02)
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    assert not (cut / "sft" / "result" / "done").exists() or len(losses(cut / "sft")) == 20
    assert main([*command[3:], "--into", str(cut)]) == 0
    assert losses(cut / "sft") == pytest.approx(losses(whole / "sft"), rel=1e-4)
    one, other = ((folder / "sft/result/model.safetensors").read_bytes() for folder in (whole, cut))
    assert len(one) == len(other)


def test_a_model_that_speaks_learns_the_form_and_then_earns_more(written, small, tmp_path: Path, losses) -> None:
    pytest.importorskip("trl", reason="needs the train extra")
    pytest.importorskip("peft", reason="needs the train extra")
    into, chosen = tmp_path / "model", config.read(written("spoken", 0), sft__steps=60)
    stages.run(chosen, [small], into, say=lambda line: None)
    rewards = losses(into / "grpo", "reward")
    assert len(rewards) == 8
    assert np.mean(rewards[-3:]) > np.mean(rewards[:3])
    assert (into / "grpo/result/model.safetensors").exists()
    (into / "grpo/result/done").unlink()
    stages.run(config.read(written("spoken", 0), sft__steps=60), [small], into, ["grpo"], say=lambda line: None)
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
    questions.make(config.read(written()), [small], tmp_path, lambda line: None)
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
