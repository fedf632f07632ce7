"""Training under `accelerate launch`: two processes on one CPU do what one does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CONFIG = """\
model = "{model}"
mode = "spoken"
precision = "fp32"

[questions]
per_kernel = 2

[sft]
steps = 6
batch = 5
pass_tokens = 4096
learning_rate = 2e-3
lora_rank = 4

[grpo]
steps = 2
questions = 2
answers = 4
tokens = 16
learning_rate = 1e-4
"""
LAUNCH = ["-m", "accelerate.commands.launch", "--cpu", "--num_processes", "2", "--main_process_port", "0"]


@pytest.mark.sweep
def test_two_processes_learn_what_one_does(tiny: Path, small, tmp_path: Path, losses) -> None:
    """Their losses are the same but for rounding. Their answers are drawn apart, so that rewards differ."""
    pytest.importorskip("trl", reason="needs the train extra")
    file = tmp_path / "spoken.toml"
    file.write_text(CONFIG.format(model=tiny))
    said = {}
    for name, launch in (("one", []), ("two", LAUNCH)):
        command = [sys.executable, *launch, "-m", "presage", "train", "llm", "--config", str(file)]
        command += ["--recording", str(small.path), "--into", str(tmp_path / name), "--merge"]
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=500, env={**os.environ, "OMP_NUM_THREADS": "1"}
        )
        assert ended.returncode == 0, ended.stderr[-2000:]
        said[name] = ended.stdout
    one, two = tmp_path / "one", tmp_path / "two"
    assert losses(two / "sft") == pytest.approx(losses(one / "sft"), rel=1e-4)
    assert len(losses(two / "grpo", "reward")) == 2
    assert {"grpo/result/adapter_model.safetensors", "merged/model.safetensors", "README.md"} <= {
        str(each.relative_to(two)) for each in two.rglob("*") if each.is_file()
    }
    assert said["two"].count("sft: step 6 of 6") == 1, "only the first process tells"
