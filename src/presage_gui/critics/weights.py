"""The weights of the `pixels` critic: boosted trees in text form, and a scaling that calibrates their probability."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from presage import PresageError
from presage.core.recalibration import Scaling

Floats = npt.NDArray[np.float64]
Evidence = Mapping[str, float]

FOLDER = Path(__file__).parent / "models"
RISING = (
    "i_hit", "i_exact_hit", "i_partly", "i_colour", "i_role_fits", "i_verb_fits", "i_fits", "relative_margin", "margin",
    "g_own", "g_lead", "g_word_here", "g_colour", "t_in_goal", "t_is_quoted", "t_is_phrase", "t_intent_exact",
    "t_intent_likeness", "t_focused", "d_i_way", "d_g_way", "s_i_way", "s_g_way", "h_finished", "e_pressed",
    "i_row", "i_asked", "i_pending", "g_row", "t_ready", "t_caret_or_ring",
    "o_g_fits", "o_i_fits", "m_fits", "v_ordinal", "v_case_fits", "w_ordinal", "w_value_hit",
)  # fmt: skip
"""Evidence with a monotone increasing constraint: a larger value never lowers the probability."""
FALLING = (
    "i_gap", "i_distance", "i_across", "i_along", "g_across", "i_early", "i_done",
    "p_same_fruitless", "h_same_fruitless", "h_last_same", "on_banner", "t_repeats", "e_no_steps",
    "e_pending", "t_meant_slip", "k_leaves", "p_same_place", "d_repeats", "s_fruitless",
    "c_ends_ready", "c_ends_unworked", "t_cut", "t_more", "t_other_case", "t_caret_away", "t_caret_from_meant",
    "x_done", "n_short", "n_ends_open", "n_ends_kinds", "n_ends_hidden", "w_conflict", "w_value_across", "f_written",
    "v_other_case", "v_cased_oddly", "v_unquoted", "v_label_other",
)  # fmt: skip
"""Evidence with a monotone decreasing constraint."""
_ROUNDS = 250
_PARAMETERS: dict[str, Any] = {
    "objective": "binary", "learning_rate": 0.1, "num_leaves": 15, "min_data_in_leaf": 25, "feature_fraction": 0.5,
    "bagging_fraction": 0.7, "bagging_freq": 1, "lambda_l2": 5.0, "num_threads": 1, "seed": 0, "deterministic": True,
    "force_row_wise": True, "verbosity": -1, "monotone_constraints_method": "intermediate", "max_bin": 63,
    "extra_trees": True,
}  # fmt: skip


@dataclass(frozen=True)
class Weights:
    """A model that maps evidence to the probability that a step is right, at a base rate of one half."""

    names: tuple[str, ...]
    text: str
    """The trees in LightGBM's text format."""
    scaling: Scaling

    def __call__(self, rows: Sequence[Evidence]) -> Floats:
        """Return one probability for each row."""
        said = np.asarray(_booster(self.text).predict(_matrix(rows, self.names), num_threads=1), dtype=np.float64)
        return self.scaling(said)

    @classmethod
    def fit(
        cls, rows: Sequence[Evidence], good: npt.ArrayLike, weight: npt.ArrayLike, scaling: Scaling | None = None
    ) -> Weights:
        """Fit trees. good: (n,), 1 if the step is right; weight: (n,), the weight of each row."""
        import lightgbm

        names = tuple(sorted({name for row in rows for name in row}))
        ways = [1 if name in RISING else -1 if name in FALLING else 0 for name in names]
        data = lightgbm.Dataset(
            _matrix(rows, names), np.asarray(good, dtype=float), weight=np.asarray(weight, dtype=float)
        )
        booster = lightgbm.train({**_PARAMETERS, "monotone_constraints": ways}, data, _ROUNDS)
        return cls(names, booster.model_to_string(), scaling or Scaling())

    def save(self, file: Path) -> None:
        head = {
            "names": self.names, "slope": self.scaling.slope, "offset": self.scaling.offset,
            "digest": _digest(self.text),
        }  # fmt: skip
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(head) + "\n" + self.text)

    @classmethod
    def load(cls, file: Path) -> Weights:
        try:
            first, _, text = file.read_text().partition("\n")
            head = json.loads(first)
            if head["digest"] != _digest(text):
                raise ValueError("it is cut short or changed")
            return cls(tuple(head["names"]), text, Scaling(head["slope"], head["offset"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise PresageError(
                f"{file} is not a model of the pixels critic: {error}; install the package again"
            ) from None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _matrix(rows: Sequence[Evidence], names: Sequence[str]) -> Floats:
    """Return the rows as a table with these columns. Missing values are NaN."""
    return np.array([[row.get(name, math.nan) for name in names] for row in rows], dtype=np.float64)


@cache
def _booster(text: str) -> Any:
    import lightgbm

    return lightgbm.Booster(model_str=text)


@cache
def shipped(with_intent: bool) -> Weights:
    """Load the weights that are shipped with this package."""
    return Weights.load(FOLDER / ("with_intent.txt" if with_intent else "bare.txt"))


def cross_fitted(
    rows: Sequence[Evidence], good: Floats, weight: Floats, families: Sequence[str], folds: int = 8
) -> Floats:
    """Return for each row the prediction of trees that were fitted without the row's family."""
    said = np.full(len(rows), math.nan)
    names = np.array(families)
    for fold in np.array_split(np.array(sorted(set(families))), folds):
        held = np.isin(names, fold)
        fitted = Weights.fit([row for row, out in zip(rows, held, strict=True) if not out], good[~held], weight[~held])
        said[held] = fitted([row for row, out in zip(rows, held, strict=True) if out])
    return said


def balanced(good: Floats, families: Sequence[str]) -> Floats:
    """Return row weights that give right and wrong steps equal weight and each family the square root of its size."""
    sizes = Counter(families)
    share_of = np.array([1 / math.sqrt(sizes[family]) for family in families])
    share = float((share_of * good).sum() / share_of.sum())
    return np.asarray(share_of * np.where(good == 1, 0.5 / share, 0.5 / (1 - share)) / share_of.mean())
