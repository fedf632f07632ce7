"""A random model of two layers, with a tokenizer of its own, and a small recording to learn from."""

from __future__ import annotations

import json
import math
import os
from dataclasses import replace
from pathlib import Path

import pytest

os.environ["HF_HUB_OFFLINE"] = "1"

from presage import Recording, Status
from presage.devices import recording
from presage.devices.recorded import RecordedDevice
from presage.devices.recording import RecordedCase, Row
from presage.forecasters import llm_question
from presage.kernels.kernel import from_source
from presage.problems import registry
from presage.train import questions
from presage.train.config import Questions
from presage.train.questions import spoken_answer

OPERATIONS = (("vector_add", "train"), ("gelu", "train"), ("relu", "train"), ("sum", "validation"))


def make_rows(problem: str, split: str) -> list[Row]:
    """Kernels whose time is the number in their source; the largest fails."""
    rows = []
    for work in (1, 2, 4, 8, 16, 32, 64, 128):
        source = f"// presage: entry k\n#define WORK {work}\nvoid k(void) {{ for (int i = 0; i < WORK; i++); }}\n"
        kernel = from_source(source, ".c", "k.c")
        timed = registry.get(problem).timed["cpu"]
        failed = work == 128
        cases = () if failed else tuple(RecordedCase(case.name, 1.0, (1000.0 * work,) * 3) for case in timed)
        status = Status.WRONG_RESULT if failed else Status.OK
        rows.append(Row(problem, "rooms", split, "k.c", "c", kernel.hash, source, {}, status, cases=cases))
    return rows


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    path = tmp_path_factory.mktemp("recording") / "small.parquet"
    rows = [row for problem, split in OPERATIONS for row in make_rows(problem, split)]
    return recording.write(path, rows, {"name": "small", "kind": "cpu", "hardware": "a formula"})


@pytest.fixture(scope="session")
def roomy(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """The same, with the operations of the train split in two rooms."""
    rooms = {"vector_add": "adding", "sum": "sums"}
    path = tmp_path_factory.mktemp("recording") / "roomy.parquet"
    rows = [
        replace(row, room=rooms.get(problem, "curves"))
        for problem, split in OPERATIONS
        for row in make_rows(problem, split)
    ]
    return recording.write(path, rows, {"name": "roomy", "kind": "cpu", "hardware": "a formula"})


def drawn(small: Recording) -> list[questions.Question]:
    device = RecordedDevice(small)
    each = ((name, list(device.rows(name).values())) for name in small.counts)
    return [one for name, rows in each for one in questions.draw(device, name, rows, Questions())]


@pytest.fixture(scope="session")
def tiny(small: Recording, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a model that knows nothing. Its tokens are long, so that what it reads and says is short."""
    for name in ("torch", "transformers", "accelerate", "peft"):
        pytest.importorskip(name, reason="needs the train extra")
    import tokenizers
    import torch
    import transformers

    conversations = [llm_question.conversation(each.text, mode) for each in drawn(small) for mode in llm_question.MODES]
    texts = [message["content"] for conversation in conversations for message in conversation]
    texts += [spoken_answer(truth) for truth in range(9)] * 20
    raw = tokenizers.Tokenizer(tokenizers.models.BPE())
    raw.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    raw.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=1500,
        max_token_length=40,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=alphabet,
        show_progress=False,
    )
    raw.train_from_iterator(texts, trainer)
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=raw, eos_token="</s>", pad_token="<s>")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=4096, eos_token_id=1, pad_token_id=0, bos_token_id=None,
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("tiny")
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def losses():
    """losses(folder): what a stage's log says of each step."""

    def read(folder: Path, key: str = "loss") -> list[float]:
        found = [json.loads(line)[key] for line in (folder / "log.jsonl").read_text().splitlines()]
        assert all(map(math.isfinite, found))
        return found

    return read
