"""The settings of an endpoint, from the environment or a TOML file. Keys come only from the environment."""

from __future__ import annotations

import dataclasses
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from presage.core.errors import PresageError, hint
from presage.core.machine import cache_folder
from presage.llm.cost import Price

_OF_ENVIRONMENT = {
    "base_url": "PRESAGE_LLM_BASE_URL",
    "model": "PRESAGE_LLM_MODEL",
    "mode": "PRESAGE_LLM_MODE",
    "prompt": "PRESAGE_LLM_PROMPT",
}
MODES = ("spoken", "readout")
PROMPTS = ("full", "compact")
_KEYS = ("PRESAGE_LLM_API_KEY", "OPENAI_API_KEY")
_KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "str": ((str,), "text"),
    "int": ((int,), "a whole number"),
    "float": ((int, float), "a number"),
    "bool": ((bool,), "true or false"),
}
_LEAST_SECRET = 8
"""Shorter keys, such as the `none` of local servers, are not masked: they are not secret and could be part of words."""


@dataclass(frozen=True)
class Settings:
    """Everything that the client needs to know about an endpoint."""

    base_url: str
    model: str = ""
    """Empty if not chosen, which only `presage llm check` allows."""
    api_key: str = field(default="", repr=False)
    mode: str = "spoken"
    """How the model answers a forecaster: `spoken`, in words, or `readout`, by its probabilities of nine digits.
    `readout` needs an endpoint that returns log-probabilities; `presage llm check` says whether it does."""
    prompt: str = ""
    """The question of a forecaster: `full`, or `compact`, which presage trains models on. By default full for a spoken
    answer; a model that is read out is always asked the compact question."""
    advised: bool = False
    """Whether the compact question states the forecast of `learned`, for a model that was trained with it."""
    readout_temperature: float = 1.0
    """The divisor of the log-probabilities when a model is read out; above 1 makes the forecast less confident."""
    temperature: float = 1.0
    max_tokens: int = 2000
    """The longest answer in tokens; a reasoning model needs more."""
    samples: int = 3
    """How many answers are averaged into one forecast."""
    timeout: float = 60.0
    """Timeout of one attempt in seconds."""
    patience: float = 180.0
    """Timeout of a question in seconds, including retries and waits."""
    concurrency: int = 4
    """The number of questions asked in parallel."""
    price: Price | None = None
    cache: Path | None = None
    """The folder of the cache; None for no cache."""

    def __post_init__(self) -> None:
        address = urlsplit(self.base_url)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise PresageError("the base URL must look like http://localhost:8000/v1 or https://host/v1")
        if address.username or address.password or address.query or address.fragment:
            raise PresageError(
                "the base URL has a user, a password or a query in it, which would be shown; put the key into"
                f" {_KEYS[0]} instead"
            )
        for name in ("max_tokens", "samples", "concurrency"):
            if (value := getattr(self, name)) < 1:
                raise PresageError(f"{name} must be 1 or more, not {value}")
        for name in ("timeout", "patience"):
            if not 0 < (value := getattr(self, name)) < float("inf"):
                raise PresageError(f"{name} must be a positive number of seconds, not {value}")
        for name, value, known in (("mode", self.mode, MODES), ("prompt", self.prompt or PROMPTS[0], PROMPTS)):
            if value not in known:
                raise PresageError(f"{name} must be {' or '.join(known)}, not '{value}'")
        if not 0.01 <= self.readout_temperature <= 100:
            raise PresageError(f"readout_temperature must be from 0.01 to 100, not {self.readout_temperature}")
        if not 0 <= self.temperature <= 2:
            raise PresageError(f"temperature must be from 0 to 2, not {self.temperature}")

    @property
    def asks_compact(self) -> bool:
        return self.mode == "readout" or self.prompt == "compact"

    def check_priced(self) -> None:
        """Raise PresageError if no price is set, which a budget in dollars needs."""
        if self.price is None:
            raise PresageError(
                "a budget in dollars needs the price of tokens: set input and output under [llm.price] in a file"
                " that PRESAGE_LLM_CONFIG names, or give --tokens instead"
            )

    def redact(self, text: str) -> str:
        """The text with the API key masked, in case an endpoint repeats it."""
        return text.replace(self.api_key, "[key]") if len(self.api_key) >= _LEAST_SECRET else text


def read(
    file: str | Path | None = None,
    environment: Mapping[str, str] = os.environ,
    needs_model: bool = True,
    **overrides: Any,
) -> Settings:
    """Settings from the arguments, else the environment, else the file (by default the one in PRESAGE_LLM_CONFIG).
    Raises PresageError."""
    file = file or environment.get("PRESAGE_LLM_CONFIG") or None
    values: dict[str, Any] = {"cache": cache_folder(environment) / "llm"}
    values |= _from_file(Path(file)) if file else {}
    values |= {name: environment[key] for name, key in _OF_ENVIRONMENT.items() if environment.get(key)}
    names = (values.pop("api_key_env", None), *_KEYS)
    values["api_key"] = next((environment[name] for name in names if name and environment.get(name)), "").strip()
    values |= {name: value for name, value in overrides.items() if value is not None}
    for name, example in (("base_url", "http://localhost:8000/v1"), ("model", "the name of a model there")):
        if not values.get(name) and (name == "base_url" or needs_model):
            raise PresageError(
                f"no {name.replace('_', ' ').replace('url', 'URL')} is set; set {_OF_ENVIRONMENT[name]} to {example},"
                f" or {name} under [llm] in a file that PRESAGE_LLM_CONFIG names"
            )
    return Settings(**values)


def _from_file(path: Path) -> dict[str, Any]:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8")).get("llm", {})
    except OSError as error:
        raise PresageError(f"cannot read {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PresageError(f"{path} is not valid TOML: {error}") from error
    if not isinstance(table, dict):
        raise PresageError(f"{path}: llm must be a table, [llm]")
    if "api_key" in table:
        raise PresageError(
            f"{path} has a key in it, and keys belong in the environment: remove api_key and set {_KEYS[0]}, or name a"
            " variable of your own with api_key_env"
        )
    kinds = {field.name: field.type for field in dataclasses.fields(Settings)} | {"api_key_env": "str"}
    return {name: _checked(path, name, value, kinds) for name, value in table.items()}


def _checked(path: Path, name: str, value: Any, kinds: Mapping[str, Any]) -> Any:
    if name not in kinds:
        known = f"known are: {', '.join(sorted(set(kinds) - {'api_key'}))}"
        raise PresageError(f"{path}: [llm] has no setting '{name}'; {hint(name, kinds, known)}")
    if name == "price":
        return Price.read(value, str(path))
    if name == "cache":
        return Path(value).expanduser() if isinstance(value, str) else _refuse(path, name, "a folder")
    kind, what = _KINDS[str(kinds[name])]
    if not isinstance(value, kind) or (isinstance(value, bool) and bool not in kind):
        _refuse(path, name, what)
    return value


def _refuse(path: Path, name: str, what: str) -> Any:
    raise PresageError(f"{path}: {name} under [llm] must be {what}")
