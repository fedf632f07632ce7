"""Merge an adapter into the weights that it was trained on, for servers that do not support adapters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from presage.core.errors import PresageError
from presage.llm.weights import described, load
from presage.train.sft import write_result

FOLDER = "merged"


def merge(folder: Path, say: Callable[[str], None] = print) -> Path:
    """Write the merged weights of a trained model to a subfolder, as safetensors in half precision. Returns the
    subfolder. Raises PresageError if there is no adapter."""
    told = described(str(folder))
    if not told.adapter:
        raise PresageError(f"{folder} has no adapter to merge")
    into = folder / FOLDER
    done = into / "done"
    if not (done.exists() and done.read_text() == told.adapter):
        sees = (folder / told.adapter / "processor_config.json").exists()
        loaded = load(str(folder), precision="fp32", sees=sees)
        write_result(loaded.model, loaded, into)
        replace(told, adapter="", weights=".").write(into)
        done.write_text(told.adapter)
    say(f"merged: {into}")
    return into
