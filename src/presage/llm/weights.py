"""Open weights on this machine: a folder, a GGUF file or a name at a model hub becomes a model with its tokenizer.

What `presage train llm` made is a folder with a file `model.json`, which names the weights that training began from and
what it added to them. Code that comes with weights is never run, and pickled weights are not read.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from presage.core.errors import PresageError, install
from presage.core.files import write_whole
from presage.llm import local

DESCRIPTION = "model.json"


@dataclass(frozen=True)
class Description:
    """What a folder that training made says of itself."""

    base: str
    """The weights that training began from: a folder, a GGUF file or a name at a hub."""
    adapter: str = ""
    """The folder, inside this one, of what LoRA adds to the base."""
    weights: str = ""
    """The folder, inside this one, of whole weights in place of the base's."""
    mode: str = "readout"
    """How it was trained to answer: `readout` or `spoken`."""
    temperature: float = 1.0
    """What the logarithms of its probabilities are to be divided by: what fitted on the validation split."""
    answers: tuple[str, ...] = ()
    """What it chooses among, where it was trained on other questions than those about kernels."""
    advised: bool = False
    """Whether its questions say what `learned` forecasts."""

    def write(self, folder: Path) -> None:
        write_whole(folder / DESCRIPTION, json.dumps(vars(self), indent=1) + "\n")

    @classmethod
    def read(cls, folder: Path) -> Description | None:
        """That of a folder; None for a folder of plain weights."""
        file = folder / DESCRIPTION
        if not file.is_file():
            return None
        try:
            told = json.loads(file.read_text(encoding="utf-8"))
            return cls(**told | {"answers": tuple(told.get("answers", ()))})
        except (TypeError, ValueError) as error:
            raise PresageError(f"{file} is not a description of a model: {error}; train it again") from error


@dataclass(frozen=True)
class Weights:
    """A model that is loaded."""

    model: Any
    tokenizer: Any
    name: str
    description: Description
    processor: Any = None
    """Of a model that sees: what makes tokens and pixels of a conversation with pictures."""

    @property
    def device(self) -> Any:
        return next(self.model.parameters()).device


def load(
    spec: str, adapter: Path | None = None, *, precision: str = "", trainable: bool = False, sees: bool = False
) -> Weights:
    """A model by its folder, GGUF file or name at a hub, on the GPU if there is one. An adapter's folder is added.

    precision: `bf16` or `fp32`; by default bf16 on a GPU and fp32 on a CPU. trainable: leave an adapter apart from the
    weights, so that it can be trained further. sees: it must take pictures, too. Raises PresageError if it cannot be
    loaded.
    """
    torch, _ = import_libraries()
    told = described(spec)
    source = str(Path(spec, told.weights)) if told.weights else told.base
    added = adapter or (Path(spec, told.adapter) if told.adapter else None)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    dtype = {"bf16": torch.bfloat16, "fp32": torch.float32, "": torch.bfloat16 if device == "cuda" else torch.float32}
    if precision not in dtype:
        raise PresageError(f"the precision is bf16 or fp32, not '{precision}'")
    model, reader = _plain(source, dtype[precision], sees)
    if added:
        model = _with_adapter(model, added, trainable)
    if trainable:
        # Its gradients behind a mask can be NaN: github.com/pytorch/pytorch/issues/196678, on Hopper since torch 2.11.
        torch.backends.cuda.enable_cudnn_sdp(False)
    tokenizer = reader.tokenizer if sees else reader
    return Weights(model.to(device), tokenizer, Path(spec).stem or spec, told, reader if sees else None)


def described(spec: str) -> Description:
    """What is known of weights by their name before they are loaded."""
    return (Description.read(Path(spec)) if Path(spec).is_dir() else None) or Description(spec)


def _plain(spec: str, dtype: Any, sees: bool) -> tuple[Any, Any]:
    """The model, and its tokenizer or, of one that sees, its processor."""
    _, transformers = import_libraries()
    reads, kind = (
        (transformers.AutoProcessor, transformers.AutoModelForImageTextToText)
        if sees
        else (transformers.AutoTokenizer, transformers.AutoModelForCausalLM)
    )
    path = local.find_weights() if spec == local.MODEL else Path(spec)
    place: dict[str, Any]
    if path.is_file():
        if path.suffix != ".gguf":
            raise PresageError(f"{path} is neither a folder of weights nor a GGUF file")
        _import_gguf()
        place = {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name}
    else:
        looks_like_path = spec.startswith((".", "/", "~")) or spec.count("/") > 1 or spec.endswith(".gguf")
        if looks_like_path and not path.is_dir():
            raise PresageError(f"there is no model {spec}; name a folder, a GGUF file or a model at a hub")
        place = {"pretrained_model_name_or_path": spec}
    safe = {} if "gguf_file" in place else {"use_safetensors": True}
    try:
        reader = reads.from_pretrained(**place)
        if sees and not hasattr(reader, "image_processor"):
            raise PresageError(f"{spec} takes no pictures: it has no image processor")
        model = kind.from_pretrained(**place, **safe, dtype=dtype)
    except (OSError, ValueError, KeyError, ImportError, NotImplementedError) as error:
        raise PresageError(f"cannot load {spec}: {_first_line(error)}") from error
    if "gguf_file" in place:
        _forget_packing(model)
    model.config.use_cache = True
    return model, reader


def _forget_packing(model: Any) -> None:
    """A GGUF file's numbers were unpacked. transformers remembers that they were packed, and then would neither train
    nor write them."""
    model.hf_quantizer, model.is_quantized = None, False
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config


def _with_adapter(model: Any, folder: Path, trainable: bool) -> Any:
    peft = import_peft()
    if not (folder / "adapter_config.json").is_file():
        raise PresageError(f"{folder} is no folder of an adapter: it has no adapter_config.json")
    try:
        adapted = peft.PeftModel.from_pretrained(model, str(folder), is_trainable=trainable)
    except (OSError, ValueError, RuntimeError) as error:
        raise PresageError(f"the adapter {folder} does not fit the model: {_first_line(error)}") from error
    return adapted if trainable else adapted.merge_and_unload()


def import_libraries() -> tuple[Any, Any]:
    """torch and transformers, or an error that says how to get them."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    try:
        import torch
        import transformers
    except ImportError as error:
        raise PresageError(f"a model on this machine needs torch and transformers; {install('train')}") from error
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    return torch, transformers


def import_peft() -> Any:
    try:
        import peft
    except ImportError as error:
        raise PresageError(f"an adapter needs the peft package; {install('train')}") from error
    return peft


def _import_gguf() -> None:
    try:
        import accelerate  # noqa: F401  transformers reads the file with these two
        import gguf  # noqa: F401
    except ImportError as error:
        raise PresageError(f"a GGUF file needs the {error.name} package; {install('train')}") from error


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:300]
