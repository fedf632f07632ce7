"""What the numbers in compact questions tell without a language model: the weights of the simple rules together, by
least squares, and how well trees that learn from more and more questions rank the validation split.

    python benchmarks/train_claims.py questions --into DATA
    python benchmarks/question_numbers.py DATA

`presage.forecasters.llm_question` has the weights. A language model that learns less than the trees is held up by its
training, not by what it is told.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from train_pieces import unpacked

from presage.core import scoring

SIZES = (250, 1000, 4000, 16_000, 64_000)
OWN = ("peak", "together")
_RULE = re.compile(r"([a-z ]+) ([+-]\d+\.\d) \d")
_FACT = re.compile(r"([a-z0-9 ]+?) ([+-]?\d+\.?\d*)(?: \(([+-]?\d+\.?\d*)\))?$")
_ROUNDS, _SETTINGS = 300, {"objective": "l2", "learning_rate": 0.05, "verbose": -1, "seed": 0, "deterministic": True}


def rules(text: str) -> dict[str, float]:
    """The log2 S of each rule in a question's last line."""
    head, _, line = text.rpartition("# log2 S and its bin by: ")
    return {word.strip(): float(value) for word, value in _RULE.findall(line)} if head else {}


def facts(text: str) -> dict[str, float]:
    """The candidate's numbers and the anchor's, behind the source, and what the rules say."""
    found = rules(text)
    for line in text.rpartition("</source")[2].splitlines():
        for part in line.partition(": ")[2].split(", ") if line.startswith(("busy", "log2:", "facts")) else ():
            if told := _FACT.match(part):
                found[told[1]], found[f"{told[1]} of the anchor"] = float(told[2]), float(told[3] or told[2])
    return found


def read(data: Path, split: str) -> list[dict[str, Any]]:
    """The questions about kernels that work."""
    return [row for row in unpacked(data / f"questions_{split}.jsonl.gz") if row["log2_speedup"] is not None]


def table(rows: Sequence[dict[str, float]], names: list[str], missing: float) -> Any:
    return np.array([[row.get(name, missing) for name in names] for row in rows])


def weights(rows: list[dict[str, Any]]) -> dict[str, float]:
    told = [(rules(row["text"]), row["log2_speedup"]) for row in rows]
    known, truth = zip(*((rule, log2_S) for rule, log2_S in told if rule), strict=True)
    names = [name for name in known[0] if name != "together"]
    found = np.linalg.lstsq(np.column_stack([table(known, names, 0.0), np.ones(len(known))]), truth, rcond=None)[0]
    return dict(zip([*names, "always"], np.round(found, 2).tolist(), strict=True))


def ranked(said: Any, rows: list[dict[str, Any]]) -> float:
    """The rank correlation in each operation, in the mean."""
    truth, operations = [row["log2_speedup"] for row in rows], [row["problem"] for row in rows]
    return float(np.nanmean(scoring.spearman(said, truth, operations)))


def main() -> None:
    import lightgbm

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    data = parser.parse_args().data
    learned, held = read(data, "train"), read(data, "validation")
    print("weights:", weights(learned))
    known, asked = ([facts(row["text"]) for row in rows] for rows in (learned, held))
    truth = np.array([row["log2_speedup"] for row in learned])
    print("Spearman within operations of the validation split, in the mean:")
    for name in OWN:
        print(f"  the rule '{name}': {ranked(table(asked, [name], 0.0)[:, 0], held):.3f}")
    names = sorted({name for row in known for name in row} - {"together"})
    for size in SIZES:
        trees = lightgbm.train(_SETTINGS, lightgbm.Dataset(table(known[:size], names, np.nan), truth[:size]), _ROUNDS)
        said = trees.predict(table(asked, names, np.nan))
        print(f"  trees, {min(size, len(known)):6} questions: {ranked(said, held):.3f}")


if __name__ == "__main__":
    main()
