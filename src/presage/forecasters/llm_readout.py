"""Read out a model on this machine that `presage train llm` made, without an endpoint."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from presage.core import scale
from presage.core.errors import PresageError
from presage.core.forecast import Forecast
from presage.forecasters import llm_question
from presage.forecasters.base import Candidate, Prediction, Task
from presage.forecasters.learned import LearnedForecaster
from presage.llm import weights
from presage.llm.anonymise import Unreadable
from presage.llm.readout import ReadOut

INVALID = Forecast.from_bins([1 / scale.BINS] * scale.BINS, p_fail=0.99)
"""The forecast for source that is not valid in its language. The model is not asked about it."""
TOO_LONG = "no forecast: the question has more tokens than the model takes"
NOT_A_DIGIT = "no forecast: the model would not answer with a digit; it may not be trained to be read out"


class LocalReadOut:
    """Asks the model about all candidates at once, in batches of similar length."""

    def __init__(self, model: str) -> None:
        self._model = model
        if weights.described(model).mode == "spoken":
            raise PresageError(f"{model} was trained to speak; serve it with 'presage llm serve --model {model}'")
        if weights.described(model) == weights.Description(model) and not Path(model).exists():
            raise PresageError(f"there is no model {model}; 'presage train llm' makes one")
        self._adviser = LearnedForecaster() if weights.described(model).advised else None
        self._known: dict[tuple[str, str], llm_question.Known] = {}

    @cached_property
    def _reader(self) -> ReadOut:
        return ReadOut(weights.load(self._model), llm_question.ANSWERS)

    def forecast(self, task: Task, candidates: Sequence[Candidate]) -> list[Prediction]:
        known = self._known.setdefault((task.problem.name, task.hardware.name if task.hardware else task.kind), {})
        texts: list[str | None] = []
        said = llm_question.advice(self._adviser, task, candidates)
        for candidate, each in zip(candidates, said, strict=True):
            try:
                texts.append(llm_question.text(task, candidate, known, each))
            except Unreadable:
                texts.append(None)
        asked = [llm_question.conversation(text, "readout") for text in texts if text is not None]
        answers = iter(self._reader.log_probabilities(asked) if asked else ())
        temperature = self._reader.weights.description.temperature if asked else 1.0
        predictions = []
        for text, each in zip(texts, said, strict=True):
            if text is None:
                predictions.append(Prediction(INVALID, ("the source is not valid, so the model was not asked",)))
                continue
            told: npt.NDArray[np.float64] = np.asarray(next(answers))
            forecast = llm_question.from_logarithms(told, temperature, each)
            why = TOO_LONG if np.isnan(told).any() else NOT_A_DIGIT
            predictions.append(Prediction(forecast, () if forecast else (why,)))
        return predictions
