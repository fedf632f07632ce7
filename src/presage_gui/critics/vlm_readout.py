"""A local vision model, trained on the questions of `presage-gui export`, whose answer probabilities are read out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from presage import PresageError
from presage.llm import weights
from presage.llm.readout import ReadOut
from presage_gui.critics.vlm_prompt import ANSWERS


class VlmReadOut:
    """Computes the probability that a step is good from one forward pass. `folder`: the trained model."""

    def __init__(self, folder: str) -> None:
        self._folder, self._told = folder, weights.described(folder)
        if self._told.mode == "spoken":
            raise PresageError(f"{folder} was trained to speak; merge it (--merge) and serve it, for example with vLLM")
        if self._told.answers != ANSWERS:
            raise PresageError(f"{folder} was not trained on questions of 'presage-gui export', which answer 0 or 1")

    @staticmethod
    def is_folder(model: str) -> bool:
        return Path(model, weights.DESCRIPTION).is_file()

    @cached_property
    def _reader(self) -> ReadOut:
        return ReadOut(weights.load(self._folder, sees=True), ANSWERS)

    def __call__(self, asked: Sequence[dict[str, Any]]) -> float:
        """Return the probability that the step is good. Raises RuntimeError if the log-probabilities are not finite."""
        bad, good = self._reader.log_probabilities([asked])[0] / self._told.temperature
        if not math.isfinite(bad - good):
            raise RuntimeError(f"its answers have the log-probabilities {bad:g} and {good:g}")
        return float(1 / (1 + math.exp(min(bad - good, 700.0))))
