"""A GGUF file's weights can be trained and written, like any others."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

gguf: Any = pytest.importorskip("gguf")
if not all(map(importlib.util.find_spec, ("torch", "transformers", "accelerate"))):  # importing them takes seconds
    pytest.skip("needs the train extra", allow_module_level=True)

from presage import PresageError  # noqa: E402
from presage.llm import weights  # noqa: E402

WIDTH, DEEP = 32, 64
WORDS = ["a", "b", "ab", *(f"<{n}>" for n in range(29)), "<s>", "</s>"]
ORDINARY, CONTROL = 1, 3


def write(path: Path) -> None:
    """One layer, its matrices in eight bits."""
    file = gguf.GGUFWriter(path, "llama")
    file.add_block_count(1)
    file.add_context_length(64)
    file.add_embedding_length(WIDTH)
    file.add_feed_forward_length(DEEP)
    file.add_head_count(2)
    file.add_head_count_kv(2)
    file.add_layer_norm_rms_eps(1e-5)
    file.add_rope_dimension_count(WIDTH // 2)
    file.add_vocab_size(len(WORDS))
    file.add_tokenizer_model("gpt2")
    file.add_tokenizer_pre("default")
    file.add_token_list(WORDS)
    file.add_token_types([ORDINARY] * (len(WORDS) - 2) + [CONTROL] * 2)
    file.add_token_merges(["a b"])
    file.add_bos_token_id(len(WORDS) - 2)
    file.add_eos_token_id(len(WORDS) - 1)
    shapes = {
        "token_embd": (len(WORDS), WIDTH),
        "output": (len(WORDS), WIDTH),
        **{f"blk.0.attn_{name}": (WIDTH, WIDTH) for name in ("q", "k", "v", "output")},
        **{f"blk.0.ffn_{name}": (DEEP, WIDTH) for name in ("gate", "up")},
        "blk.0.ffn_down": (WIDTH, DEEP),
    }
    generator, packed = np.random.default_rng(0), gguf.GGMLQuantizationType.Q8_0
    for name, shape in shapes.items():
        numbers = generator.normal(size=shape).astype(np.float32)
        file.add_tensor(f"{name}.weight", gguf.quants.quantize(numbers, packed), raw_dtype=packed)
    for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        file.add_tensor(f"{name}.weight", np.ones(WIDTH, dtype=np.float32))
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()


def test_its_weights_are_written_and_read_again(tmp_path: Path) -> None:
    write(tmp_path / "model.gguf")
    loaded = weights.load(str(tmp_path / "model.gguf"), precision="fp32")
    assert all(each.requires_grad for each in loaded.model.parameters())
    loaded.model.save_pretrained(tmp_path / "written")
    loaded.tokenizer.save_pretrained(tmp_path / "written")
    again = weights.load(str(tmp_path / "written"), precision="fp32")
    first, second = loaded.model.state_dict(), again.model.state_dict()
    assert first.keys() == second.keys()
    assert all(bool((first[name] == second[name]).all()) for name in first)


@pytest.mark.parametrize("content", [b"", b"GGUF" + b"\x03\0\0\0" + b"\x07" * 50, "half"])
def test_a_damaged_file_is_refused_in_words(tmp_path: Path, content: bytes | str) -> None:
    file = tmp_path / "model.gguf"
    write(file)
    file.write_bytes(content if isinstance(content, bytes) else file.read_bytes()[: file.stat().st_size // 2])
    with pytest.raises(PresageError, match="cannot load"):
        weights.load(str(file), precision="fp32")


@pytest.mark.parametrize("name", ["models/none", "none"])
def test_a_name_that_is_neither_a_folder_nor_at_a_hub_is_refused_in_words(name: str) -> None:
    with pytest.raises(PresageError, match=f"cannot load {name}: there is no folder or file of this name, and the"):
        weights.load(name)
