"""The card of a trained model: its data, scores, cost, use and limits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from presage.core.files import write_whole
from presage.train.config import Config
from presage.train.scores import table

FILE = "README.md"

_TEXT = """---
license: {licence}
base_model: {base}
{library}tags: [presage, forecasting{tags}]
---

# {title}

Trained by `presage train llm` from `{base}`. {manner} {purpose}

## Data
{data}

## Scores
{scores}

## Cost
{cost}

## Use
```sh
{use}
```

## Limits
{limits}

## Licence
That of the base: {licence_text}.
"""
_MANNERS = {
    "readout": "It is read out: the probabilities of its answers are the forecast.",
    "spoken": "It answers in words.",
}
_KERNELS = {
    "tags": ", gpu, kernels",
    "title": "A forecaster of kernel speedups",
    "purpose": "It forecasts S, the speedup of a kernel over a\nmeasured anchor, as probabilities of eight ranges and "
    "of failure.",
    "use": "presage forecast PROBLEM KERNEL --forecaster llm:model={folder}\npresage llm serve --model {folder}",
    "limits": "It knows the hardware and the kinds of kernels of its recordings. A forecast is not a measurement. How "
    "good it is on\noperations that it has never met: `presage evaluate llm:model={folder} learned`.",
}
_SPOKEN = {
    "use": "presage llm serve --model {folder}  # prints PRESAGE_LLM_BASE_URL\n"
    "PRESAGE_LLM_CONFIG={folder}/llm.toml presage forecast PROBLEM KERNEL --forecaster llm",
    "limits": "It knows the hardware and the kinds of kernels of its recordings. A forecast is not a measurement. How "
    "good it is on\noperations that it has never met: `presage evaluate llm learned`, while it is served.",
}
"""What differs for a model that speaks: it is asked at an endpoint."""
_OWN = {
    "tags": "",
    "title": "A model for questions of one kind",
    "purpose": "It answers questions like those it was trained on.",
    "use": "presage train llm --questions QUESTIONS --config CONFIG --into {folder}  # goes on, or scores it again",
    "limits": "It knows questions like these, and no others. Scores are of the validation split, on which its "
    "temperature was\nfitted, too: each half of its groups with the temperature of the other.",
}


def write(folder: Path, config: Config, facts: Mapping[str, Any]) -> None:
    """Write the card to the folder of a training. facts: `recordings` or `own`, `questions`, `scores`, `stages`,
    `machine`."""
    manner = _MANNERS[config.mode]
    kind = {key: text.format(folder=folder.name) for key, text in (_OWN if "own" in facts else _KERNELS).items()}
    if config.mode == "spoken" and "own" not in facts:
        kind |= {key: text.format(folder=folder.name) for key, text in _SPOKEN.items()}
    base = Path(config.model).name if Path(config.model).exists() else config.model
    write_whole(
        folder / FILE,
        _TEXT.format(
            licence=config.licence or "unknown", base=base, manner=manner, **kind,
            library="library_name: peft\n" if config.sft.lora_rank else "", data=_data(facts),
            scores=_scores(facts.get("scores") or {}), cost=_cost(config, facts),
            licence_text=config.licence or "look it up before you pass this on",
        ),
    )  # fmt: skip


def _data(facts: Mapping[str, Any]) -> str:
    counts = ", ".join(f"{count:,} of the {split} split" for split, count in (facts.get("questions") or {}).items())
    recordings = ", ".join(facts.get("recordings") or ()) or "unknown"
    source = f"Questions of {facts['own']}" if "own" in facts else f"Recordings: {recordings}. Questions"
    return f"{source}: {counts or 'none'}. Test splits were not looked at."


def _scores(columns: Mapping[str, Mapping[str, float]]) -> str:
    if not columns:
        return "Not scored: only a model that is read out is, on the validation split of its recordings."
    heading = ["validation split", *columns]
    lines = [heading, ["---"] * len(heading), *table(columns)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cost(config: Config, facts: Mapping[str, Any]) -> str:
    lines = [f"- {stage}: {_told(each)}" for stage, each in (facts.get("stages") or {}).items()]
    machine = facts.get("machine")
    return "\n".join([*lines, *([f"- on {machine}"] if machine else [])]) or "Not known."


def _told(facts: Mapping[str, Any]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {_plain(value)}" for name, value in facts.items())


def _plain(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else value if isinstance(value, str) else json.dumps(value)
