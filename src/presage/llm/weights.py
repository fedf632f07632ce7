"""Load open weights on this machine: a folder, a GGUF file or a name at a model hub becomes a model with its tokenizer.

`presage train llm` makes a folder with a file `model.json`. The file names the base weights that training began from,
and the adapter or the weights that it made. Code that comes with weights is never run; pickled weights are not read.
"""

from __future__ import annotations

import functools
import json
import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from presage.core.errors import PresageError, install
from presage.core.files import write_whole
from presage.core.text import one_line
from presage.llm import local

DESCRIPTION = "model.json"
_ADAPTER = "adapter_model.safetensors"


@dataclass(frozen=True)
class Description:
    """The file `model.json` in a folder that training made."""

    base: str
    """The weights that training began from: a folder, a GGUF file or a name at a hub."""
    adapter: str = ""
    """The subfolder with the LoRA adapter for the base."""
    weights: str = ""
    """The subfolder with whole weights that replace the base."""
    mode: str = "readout"
    """How the model was trained to answer: `readout` or `spoken`."""
    temperature: float = 1.0
    """The divisor of its log-probabilities, fitted on the validation split."""
    answers: tuple[str, ...] = ()
    """The answers that it chooses among, if it was trained on other questions than those about kernels."""
    advised: bool = False
    """Whether its questions state the forecast of `learned`."""

    def __post_init__(self) -> None:
        texts = (self.base, self.adapter, self.weights, self.mode, *self.answers)
        if not all(isinstance(each, str) for each in texts) or not isinstance(self.advised, bool):
            raise TypeError("a value in it is of another type than it should be")
        if not 0 < self.temperature < math.inf:
            raise ValueError(f"a temperature is a positive number, not {self.temperature}")

    def write(self, folder: Path) -> None:
        write_whole(folder / DESCRIPTION, json.dumps(vars(self), indent=1) + "\n")

    @classmethod
    def read(cls, folder: Path) -> Description | None:
        """The description in a folder; None for a folder of plain weights. Raises PresageError."""
        file = folder / DESCRIPTION
        if not file.is_file():
            return None
        try:
            told = json.loads(file.read_text(encoding="utf-8"))
            return cls(**told | {"answers": tuple(told.get("answers", ()))})
        except (AttributeError, RecursionError, TypeError, ValueError) as error:
            raise PresageError(f"{file} is not a description of a model: {error}; train it again") from error


@dataclass(frozen=True)
class Weights:
    """A loaded model."""

    model: Any
    tokenizer: Any
    name: str
    description: Description
    processor: Any = None
    """For a vision model: turns a conversation with pictures into tokens and pixels."""

    @property
    def device(self) -> Any:
        return next(self.model.parameters()).device

    @property
    def context(self) -> float:
        """The most tokens that the model takes, with the answer; infinite if its configuration gives no limit."""
        return getattr(self.model.config.get_text_config(), "max_position_embeddings", None) or math.inf


def load(
    spec: str, adapter: Path | None = None, *, precision: str = "", trainable: bool = False, sees: bool = False
) -> Weights:
    """Load a model from a folder, a GGUF file or a hub, onto the GPU if there is one. adapter: its folder.

    precision: `bf16` or `fp32`; by default bf16 on a GPU and fp32 on a CPU. trainable: keep the adapter separate from
    the weights, so that it can be trained further. sees: load a vision model. Raises PresageError if the model cannot
    be loaded.
    """
    torch, _ = import_libraries()
    told = described(spec)
    source = str(Path(spec, told.weights)) if told.weights else told.base
    added = adapter or (Path(spec, told.adapter) if told.adapter else None)
    if source != spec and Path(source).is_absolute() and not Path(source).exists():
        raise PresageError(
            f"{spec} was trained from {source}, which is not there; write where it is now as base in "
            f"{Path(spec, DESCRIPTION)}"
        )
    device = "cuda" if torch.cuda.is_available() else "cpu"
    dtype = {"bf16": torch.bfloat16, "fp32": torch.float32, "": torch.bfloat16 if device == "cuda" else torch.float32}
    if precision not in dtype:
        raise PresageError(f"the precision is bf16 or fp32, not '{precision}'")
    with _one_reading():
        model, reader = _plain(source, dtype[precision], sees)
    if added:
        model = _with_adapter(model, added, trainable)
    if trainable:
        # With a mask, its gradients can be NaN on Hopper since torch 2.11: github.com/pytorch/pytorch/issues/196678.
        torch.backends.cuda.enable_cudnn_sdp(False)
    tokenizer = reader.tokenizer if sees else reader
    return Weights(model.to(device), tokenizer, Path(spec).stem or spec, told, reader if sees else None)


def described(spec: str) -> Description:
    """The description of weights by their name, without loading them."""
    return (Description.read(Path(spec)) if Path(spec).is_dir() else None) or Description(spec)


def load_tokenizer(spec: str) -> Any:
    """The tokenizer of a model, without its weights. Raises PresageError if there is none."""
    _, transformers = import_libraries()
    told = described(spec)
    with _one_reading():
        return _read(transformers.AutoTokenizer, str(Path(spec, told.weights)) if told.weights else told.base)


def _plain(spec: str, dtype: Any, sees: bool) -> tuple[Any, Any]:
    """The model, and its tokenizer or, for a vision model, its processor."""
    _, transformers = import_libraries()
    reads, kind = (
        (transformers.AutoProcessor, transformers.AutoModelForImageTextToText)
        if sees
        else (transformers.AutoTokenizer, transformers.AutoModelForCausalLM)
    )
    reader = _read(reads, spec)
    if sees and not hasattr(reader, "image_processor"):
        raise PresageError(f"{spec} takes no pictures: it has no image processor")
    unpacking = _unpacking(spec)
    model, found = _read(kind, spec, dtype=dtype, output_loading_info=True, use_safetensors=True, **unpacking)
    if missing := sorted(found["missing_keys"]):
        raise PresageError(
            f"cannot load {spec}: it lacks {len(missing)} tensors of its model, such as {missing[0]}; is it a whole "
            "language model?"
        )
    words = (reader.tokenizer if sees else reader).vocab_size
    if words > (most := model.get_input_embeddings().num_embeddings):
        raise PresageError(f"cannot load {spec}: its tokenizer has {words} tokens, and its model {most}")
    if _place(spec).is_file():
        _forget_packing(model)
    if unpacking:
        model._weight_conversions = None  # else they are saved under the names of packed weights, and not read again
    model.config.use_cache = True
    return model, reader


def _unpacking(spec: str) -> dict[str, Any]:
    """Options that unpack weights in MXFP4, the format of gpt-oss. With the package kernels, transformers would leave
    them packed, and then they can be neither trained nor merged."""
    _, transformers = import_libraries()
    if _place(spec).is_file():
        return {}
    packed = getattr(_read(transformers.AutoConfig, spec), "quantization_config", None)
    if not isinstance(packed, dict) or packed.get("quant_method") != "mxfp4":
        return {}
    return {"quantization_config": transformers.Mxfp4Config(dequantize=True)}


def _place(spec: str) -> Path:
    """Where weights are on this machine, if they are. Raises PresageError if their name can only be that of a file."""
    path = local.find_weights() if spec == local.MODEL else Path(spec)
    if path.is_file() and path.suffix != ".gguf":
        raise PresageError(f"{path} is neither a folder of weights nor a GGUF file")
    looks_like_path = spec.startswith((".", "/", "~")) or spec.count("/") > 1 or spec.endswith(".gguf")
    if looks_like_path and not path.exists():
        raise PresageError(f"there is no model {spec}; name a folder, a GGUF file or a model at a hub")
    return path


def _read(kind: Any, spec: str, **options: Any) -> Any:
    """Let a class of transformers read what these weights have for it."""
    path = _place(spec)
    place = {"pretrained_model_name_or_path": spec}
    if path.is_file():
        _import_gguf()
        place = {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name}
        options.pop("use_safetensors", None)
    try:
        return kind.from_pretrained(**place, **options)
    except Exception as error:  # for damaged weights, transformers and what it uses raise errors of all kinds
        why = _in_a_line(error)
        if "ignore_mismatched_sizes" in why:
            why = "its weights are of other sizes than its config.json says"
        if not path.exists():
            why = f"there is no folder or file of this name, and the model hub gave none: {why}"
        raise PresageError(f"cannot load {spec}: {why}") from error


@contextmanager
def _one_reading() -> Iterator[None]:
    """Let transformers read a GGUF file's facts once within the block. It asks for them several times, and the reader
    takes seconds for the words of a tokenizer; and it makes the same map of names for each module of the model."""
    try:
        import gguf
    except ImportError:
        yield
        return

    class Reader(gguf.GGUFReader):  # type: ignore[misc]
        @property
        def data(self) -> Any:
            return self._plain

        @data.setter
        def data(self, value: Any) -> None:
            self._plain = np.asarray(value)  # of a memmap, each of its million slices takes five times as long

    reader, names = gguf.GGUFReader, gguf.get_tensor_name_map
    gguf.GGUFReader, gguf.get_tensor_name_map = functools.cache(Reader), functools.cache(names)
    try:
        yield
    finally:
        gguf.GGUFReader, gguf.get_tensor_name_map = reader, names


def _forget_packing(model: Any) -> None:
    """Clear the mark that the weights are quantised. They were unpacked from a GGUF file, but with this mark
    transformers would neither train nor save them."""
    model.hf_quantizer, model.is_quantized = None, False
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config


def _with_adapter(model: Any, folder: Path, trainable: bool) -> Any:
    peft = import_peft()
    for name in ("adapter_config.json", _ADAPTER):  # else peft looks at a hub, or reads pickled weights
        if not (folder / name).is_file():
            raise PresageError(f"{folder} is no folder of an adapter: it has no {name}")
    try:
        adapted = peft.PeftModel.from_pretrained(model, str(folder), is_trainable=trainable)
        surplus = _names(folder) - set(peft.get_peft_model_state_dict(adapted, save_embedding_layers=False))
    except Exception as error:  # as for weights
        raise PresageError(f"the adapter {folder} does not fit the model: {_in_a_line(error)}") from error
    if surplus:
        raise PresageError(
            f"the adapter {folder} does not fit the model: it is also for {len(surplus)} tensors that the model lacks,"
            f" such as {min(surplus)}"
        )
    return adapted if trainable else adapted.merge_and_unload()


def _names(folder: Path) -> set[str]:
    """The names of an adapter's tensors."""
    from safetensors import safe_open

    with safe_open(str(folder / _ADAPTER), framework="pt") as file:
        return set(file.keys())


def import_libraries() -> tuple[Any, Any]:
    """Import torch and transformers. Raises a PresageError that says how to install them."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    # Threads that wait by spinning take the cores from those that they wait for, wherever something else is running:
    # beside other programs on two cores, small products took nearly twice as long (docs/measured/training.md).
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    if not sys.stderr.isatty():
        os.environ.setdefault("TQDM_DISABLE", "1")  # else bars fill logs
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


def _in_a_line(error: BaseException) -> str:
    return one_line(str(error), 300) or type(error).__name__
