"""The model of modules that `presage train modules` makes: a correction of the times of their own kernels, the error of
the sum of a module's steps, and a logistic regression for failures.

The error has two parts: most modules follow a normal distribution, and those that are far off Student's t distribution
with two degrees of freedom, whose tails are heavy and whose functions are simple.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from presage.core.errors import PresageError
from presage.forecasters.launch_times import MARKS, NO_CORRECTION, Correction
from presage.plugins.group import MODELS

Floats = npt.NDArray[np.float64]

VERSION = 3
FILE = "modules.json"
_HALVINGS = 30


def densities(octaves: npt.ArrayLike, deviation: npt.ArrayLike, near: float, far: float) -> tuple[Floats, Floats]:
    """The densities of errors of typical modules and of those that are far off.

    >>> [round(float(each), 4) for each in densities(0.0, 0.0, 0.5, 1.0)]
    [0.7979, 0.3536]
    """
    off, one, other = np.asarray(octaves), np.hypot(deviation, near), np.hypot(deviation, far)
    of_near = np.exp(-((off / one) ** 2) / 2) / (one * math.sqrt(2 * math.pi))
    of_far = 1 / (other * (2 + (off / other) ** 2) ** 1.5)
    return np.asarray(of_near), np.asarray(of_far)


@dataclass(frozen=True)
class ModuleModel:
    """Most modules are about as near to the sum of their steps as the steps' uncertainty says. Some are far off, for
    reasons that their traces do not show."""

    near: float
    """For most modules: the standard deviation in octaves beyond the uncertainty of their steps."""
    far: float
    """For modules that are far off: the same, as the scale of the t distribution."""
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

    def below(self, octaves: npt.ArrayLike, deviation: float) -> Floats:
        """The probability that a module's error is below so many octaves. deviation: the uncertainty of its steps.

        >>> round(float(ModuleModel(0.1, 0.3, 0.5, 0.0, {}).below(0.3, 0.0)), 4)
        0.8937
        """
        from scipy.special import ndtr  # imported late, because it is slow to import

        near, far = (np.asarray(octaves) / math.hypot(deviation, more) for more in (self.near, self.far))
        of_far = (1 + far / np.sqrt(2 + far * far)) / 2
        return np.asarray((1 - self.far_share) * ndtr(near) + self.far_share * of_far)

    def quantiles(self, levels: npt.ArrayLike, deviation: float) -> Floats:
        """The errors in octaves below which a module's error is with these probabilities.

        >>> model = ModuleModel(0.1, 0.3, 0.5, 0.0, {})
        >>> model.below(model.quantiles([0.05, 0.5, 0.95], 0.2), 0.2).round(6).tolist()
        [0.05, 0.5, 0.95]
        """
        from scipy.special import ndtri

        level = np.asarray(levels, dtype=np.float64)
        near, far = (math.hypot(deviation, more) for more in (self.near, self.far))
        ends = near * ndtri(level), far * (2 * level - 1) / np.sqrt(2 * level * (1 - level))
        low, high = np.minimum(*ends), np.maximum(*ends)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            is_low = self.below(middle, deviation) < level
            low, high = np.where(is_low, middle, low), np.where(is_low, high, middle)
        return np.asarray((low + high) / 2)

    def p_far(self, octaves: float, deviation: float) -> float:
        """The probability that a module with this error is one of those that are far off."""
        near, far = densities(octaves, deviation, self.near, self.far)
        return float(self.far_share * far / ((1 - self.far_share) * near + self.far_share * far))

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
