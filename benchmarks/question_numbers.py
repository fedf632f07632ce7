"""Measure what the numbers in compact questions tell without a language model.

Print the weights of the rule that combines the numbers, by least squares. Then print how well boosted trees, trained on
increasing numbers of questions, rank the kernels of the validation split.

    python benchmarks/train_claims.py questions --into DATA
    python benchmarks/question_numbers.py DATA

`presage.forecasters.llm_question` contains the weights. If a language model ranks worse than the trees, its training is
the limit, not the information in the questions.
"""

from __future__ import annotations

import argparse
import math
import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from train_pieces import unpacked

from presage.core import scoring

SIZES = (250, 1000, 4000, 16_000, 64_000)
OWN = ("peak", "together")
COUNTED = ("registers", "occupancy", "last wave", "load width", "bank conflicts")
WEIGHED = ("memory", "issue", "integer", "sum", "resident warps", "spilled", *COUNTED)
"""The facts that the rule combines: those that improve it on operations of the train split that were held out."""
_RULE = re.compile(r"([a-z ]+) ([+-]\d+\.\d) \d")
_FACT = re.compile(r"([a-z0-9 ]+?) ([+-]?\d+\.?\d*)(?: \(([+-]?\d+\.?\d*)\))?$")
_ROUNDS, _SETTINGS = 300, {"objective": "l2", "learning_rate": 0.05, "verbose": -1, "seed": 0, "deterministic": True}


def rules(text: str) -> dict[str, float]:
    """Return the log2 S of each rule in a question's last line."""
    head, _, line = text.rpartition("# log2 S and its bin by: ")
    return {word.strip(): float(value) for word, value in _RULE.findall(line)} if head else {}


def facts(text: str) -> dict[str, float]:
    """Return the numbers of the candidate and of the anchor that follow the source, and the log2 S of each rule."""
    found = rules(text)
    for line in text.rpartition("</source")[2].splitlines():
        for part in line.partition(": ")[2].split(", ") if line.startswith(("busy", "log2:", "facts")) else ():
            if told := _FACT.match(part):
                found[told[1]], found[f"{told[1]} of the anchor"] = float(told[2]), float(told[3] or told[2])
    return found


def read(data: Path, split: str) -> list[dict[str, Any]]:
    """Return the questions about kernels that work."""
    return [row for row in unpacked(data / f"questions_{split}.jsonl.gz") if row["log2_speedup"] is not None]


def table(rows: Sequence[dict[str, float]], names: list[str], missing: float) -> Any:
    return np.array([[row.get(name, missing) for name in names] for row in rows])


def differences(row: Mapping[str, float]) -> list[float]:
    """Return the inputs of the rule: for each fact, the anchor's octaves less the candidate's; then `peak`, and 1."""
    return [_size(row, name, " of the anchor") - _size(row, name, "") for name in WEIGHED] + [row["peak"], 1.0]


def _size(row: Mapping[str, float], name: str, whose: str) -> float:
    value = row.get(name + whose, 0.0)
    return math.log2(1 + value) if name in COUNTED else value


def fitted(rows: Sequence[Mapping[str, float]], truth: Sequence[float]) -> Any:
    known = [i for i, row in enumerate(rows) if "peak" in row]
    return np.linalg.lstsq(
        np.array([differences(rows[i]) for i in known]), np.array([truth[i] for i in known]), rcond=None
    )[0]


def weights(rows: Sequence[Mapping[str, float]], truth: Sequence[float], operations: Sequence[str]) -> None:
    """Print the weights, and how well they rank operations in four-fold cross-validation over operations."""
    names = sorted(set(operations))
    part = {name: number % 4 for number, name in enumerate(random.Random(0).sample(names, len(names)))}
    said = np.zeros(len(rows))
    for number in range(4):
        seen = [i for i, name in enumerate(operations) if part[name] != number]
        found = fitted([rows[i] for i in seen], [truth[i] for i in seen])
        held = [i for i, name in enumerate(operations) if part[name] == number and "peak" in rows[i]]
        said[held] = np.array([differences(rows[i]) for i in held]) @ found
    found = np.round(fitted(rows, truth), 2).tolist()
    print("weights:", dict(zip([*WEIGHED, "peak", "always"], found, strict=True)))
    ranks = float(np.nanmean(scoring.spearman(said, truth, operations)))
    print(f"  Spearman within unseen operations of the train split, in the mean: {ranks:.3f}")


def ranked(said: Any, rows: list[dict[str, Any]]) -> float:
    """Return the mean over operations of the rank correlation within each operation."""
    truth, operations = [row["log2_speedup"] for row in rows], [row["problem"] for row in rows]
    return float(np.nanmean(scoring.spearman(said, truth, operations)))


def main() -> None:
    import lightgbm

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    data = parser.parse_args().data
    learned, held = read(data, "train"), read(data, "validation")
    known, asked = ([facts(row["text"]) for row in rows] for rows in (learned, held))
    truth = np.array([row["log2_speedup"] for row in learned])
    weights(known, truth.tolist(), [row["problem"] for row in learned])
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
