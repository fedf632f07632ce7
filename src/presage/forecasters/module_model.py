"""The model of modules that `presage train modules` makes: a correction of the times of their own kernels, the error of
the sum of a module's steps, and a logistic regression for failures."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from presage.core.errors import PresageError
from presage.forecasters.launch_times import MARKS, NO_CORRECTION, Correction
from presage.plugins.group import MODELS

VERSION = 2
FILE = "modules.json"


@dataclass(frozen=True)
class ModuleModel:
    """Most modules are about as near to the sum of their steps as the steps' uncertainty says. Some are far off, for
    reasons that their traces do not show."""

    near: float
    """For most modules: the standard deviation in octaves beyond the uncertainty of their steps."""
    far: float
    """The same for modules that are far off."""
    far_share: float
    """The share of modules that are far off."""
    bias: float
    weights: Mapping[str, float]
    """Of a logistic regression on the signs of `module_failures`, which gives the probability of failure."""
    launches: Correction = NO_CORRECTION
    """The correction of the times of modules' own kernels."""

    def p_fail(self, signs: Collection[str]) -> float:
        """The probability that a module with these signs fails."""
        return 1 / (1 + math.exp(-self.bias - sum(self.weights.get(sign, 0.0) for sign in signs)))

    @classmethod
    def load(cls, folder: Path | None = None) -> ModuleModel:
        """Read a model from a folder; by default, the installed one, the entry point `modules` of `presage.models`.
        Raises PresageError."""
        folder = folder or Path(MODELS.load("modules"))
        try:
            facts = json.loads((folder / FILE).read_text())
            if facts["version"] != VERSION:
                raise PresageError(
                    f"{folder} holds a model of version {facts['version']}, not {VERSION}; train it again"
                )
            numbers = {name: float(facts[name]) for name in ("near", "far", "far_share", "bias")}
            weights = {name: float(weight) for name, weight in facts["weights"].items()}
            correction = {mark: float(facts["launches"]["weights"][mark]) for mark in MARKS}
            launches = Correction(float(facts["launches"]["bias"]), correction)
            if not all(map(math.isfinite, (*numbers.values(), *weights.values(), launches.bias, *correction.values()))):
                raise ValueError("a number in it is not finite")
            if min(numbers["near"], numbers["far"]) <= 0 or not 0 <= numbers["far_share"] <= 1:
                raise ValueError("near and far must be above 0, and far_share a share")
            return cls(**numbers, weights=weights, launches=launches)
        except FileNotFoundError as error:
            raise PresageError(
                f"there is no model of modules in {folder}; 'presage train modules' makes one from a recording"
            ) from error
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise PresageError(
                f"the model in {folder} cannot be read: {error}; 'presage train modules' makes one"
            ) from error

    def write(self, folder: Path, **facts: object) -> None:
        """Write the model to a folder. facts: more entries for the file, on how the model was made."""
        folder.mkdir(parents=True, exist_ok=True)
        document = {"version": VERSION, **asdict(self), **facts}
        (folder / FILE).write_text(json.dumps(document, indent=1) + "\n")
