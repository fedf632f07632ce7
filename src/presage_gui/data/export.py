"""Export questions for fine-tuning a vision model with `presage train llm --questions FOLDER` or another trainer.

The questions are those of the `vlm` critic. Each line of `SPLIT.jsonl` has `messages` in the usual chat format. The
last message is the answer: a digit (mode `readout`) or a JSON object (mode `spoken`). Pictures are files in `images/`.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from presage import PresageError
from presage.core.files import write_whole
from presage_gui.critics.vlm_prompt import BAD, GOOD, MANNERS, NO_ERROR, messages
from presage_gui.critics.wording import is_committing
from presage_gui.data.dataset import SHIPPED, Labelled, State, load
from presage_gui.data.splits import Split
from presage_gui.marking import marked
from presage_gui.step import Step

_SURE = 0.95
"""The probability in spoken answers. It only teaches the format; the critic recalibrates the model's probabilities."""


def export(
    split: Split,
    out: Path,
    place: Path | str = SHIPPED,
    mode: str = "readout",
    intents: bool = True,
    most: int | None = None,
) -> Path:
    """Write the questions of a split and their pictures, and return the file. `most`: write a random sample of this
    many questions. `intents`: whether the steps keep their intents."""
    if mode not in MANNERS:
        raise PresageError(f"the mode is {' or '.join(MANNERS)}, not '{mode}'")
    (out / "images").mkdir(parents=True, exist_ok=True)
    chosen = list(_labelled(split, place))
    if most is not None and most < len(chosen):
        chosen = [chosen[i] for i in sorted(random.Random(0).sample(range(len(chosen)), most))]
    lines = [json.dumps(_question(state, proposal, out, mode, intents)) for state, proposal in chosen]
    file = out / f"{split}.jsonl"
    write_whole(file, "".join(f"{line}\n" for line in lines))
    return file


def _labelled(split: Split, place: Path | str) -> Iterator[tuple[State, Labelled]]:
    for state in load(split, place):
        for proposal in state.proposals:
            if proposal.step is not None:  # malformed actions need no model
                yield state, proposal


def _question(state: State, proposal: Labelled, out: Path, mode: str, intents: bool) -> dict[str, Any]:
    assert proposal.step is not None
    step = proposal.step if intents else proposal.step.bare
    picture = marked(state.screen, step.action)
    name = f"images/{picture.digest}.png"
    (out / name).write_bytes(picture.png)
    asked = messages(state.goal, state.history, state.screen, step, mode, name)
    answer = (GOOD if proposal.good else BAD) if mode == "readout" else _spoken(proposal, step)
    told = {"task": state.task, "family": state.family, "split": state.split}
    return {"messages": [*asked, {"role": "assistant", "content": answer}], "group": state.task, **told}


def _spoken(proposal: Labelled, step: Step) -> str:
    """Return the JSON answer that the critic parses. `expected` is empty, as the recordings lack it."""
    error = proposal.error
    answer = {
        "expected": "",
        "rule": error.words if error else "",
        "error": str(error) if error else NO_ERROR,
        "probability": _SURE if proposal.good else round(1 - _SURE, 2),
        "irreversible": any(map(is_committing, step.intent.split())),
    }
    return json.dumps(answer)
