"""The first stage: turn a recording into questions with their right answers, a JSON-lines file for each operation.

Operations keep their split: the `train` split is for training; the `validation` split is for fitting a temperature and
for scores during training. Test splits are not written: `presage evaluate` asks about them. Anchors are mixed (the seed
kernel, then others at random), some questions show measured neighbours, and kernels that fail are included.
"""

from __future__ import annotations

import dataclasses
import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from presage.core import scale
from presage.core.errors import PresageError
from presage.core.files import write_whole
from presage.devices.recorded import RecordedDevice
from presage.devices.recording import Recording, Row
from presage.forecasters import llm_question
from presage.forecasters.base import Candidate, Measured, Task
from presage.llm.anonymise import Unreadable
from presage.train import advice
from presage.train.advice import Advice
from presage.train.config import Config, Questions
from presage.train.conversations import Conversation

FACTS = "facts.json"
ADVICE = "advice"
SPLITS = ("train", "validation")
_BASELINES = ("eager.py", "compiled.py")
"""PyTorch's own kernels, which are not forecast."""
_SAYS_EVERY = 10.0
"""Seconds between two lines that tell how far it is."""
_PEAKS = (0.35, 0.5, 0.65, 0.8, 0.95)
"""Probabilities of the right bin in the target answers of a spoken model."""
_BESIDE = 0.35
"""The share of the rest that each of its neighbours has."""
_WORKS, _FAILS = (0.02, 0.1, 0.2), (0.5, 0.7, 0.9)
"""In the same answers, the probability of failure of kernels that work and of those that fail."""


@dataclass(frozen=True)
class Question:
    """One question and its right answer."""

    problem: str
    room: str
    split: str
    language: str
    anchor: str
    kernel: str
    """The hash of the kernel; `anchor` is that of the anchor."""
    truth: int
    """The number of the right answer: 0 for a kernel that failed, else 1 + the bin of its speedup."""
    log2_speedup: float | None
    text: str

    def conversation(self, mode: str) -> Conversation:
        """The question and its right answer as a conversation in this mode."""
        if mode == "readout":
            answer = llm_question.ANSWERS[self.truth]
        else:
            answer = spoken_answer(self.truth, f"{self.anchor}/{self.kernel}")
        return Conversation(llm_question.conversation(self.text, mode), answer, self.problem)


def make(config: Config, recordings: Sequence[Recording], folder: Path, say: Callable[[str], None] = print) -> None:
    """Write the missing questions of these recordings to a folder. Each file is written atomically."""
    folder.mkdir(parents=True, exist_ok=True)
    names = sorted(recording.name for recording in recordings)
    splits = _splits(recordings)
    claim_for(config, folder, names)
    known = json.loads((folder / FACTS).read_text()).get("recordings", names)
    if known != names:
        raise PresageError(
            f"the questions in {folder} are of the recordings {', '.join(known)}, not {', '.join(names)}; give another "
            "folder with --into, or remove it"
        )
    advisers = advice.make(recordings, folder / ADVICE, say) if config.questions.advised else None
    every = ((recording, problem) for recording in recordings for problem in recording.counts)
    asked = [(recording, problem) for recording, problem in every if splits[problem] in SPLITS]
    missing = [(recording, problem) for recording, problem in asked if not _file(folder, recording, problem).exists()]
    written, said = 0, time.monotonic()
    for number, (recording, problem) in enumerate(missing, 1):
        device = RecordedDevice(recording)  # a new one for each operation, since it keeps the rows that it has read
        rows = [row for row in device.rows(problem).values() if row.family not in _BASELINES]
        rows = [row for row in rows if row.source or row.reports]
        drawn = list(draw(device, problem, rows, config.questions, advisers)) if rows else []
        lines = "".join(json.dumps(dataclasses.asdict(each)) + "\n" for each in drawn)
        write_whole(_file(folder, recording, problem), lines)
        written += len(drawn)
        if time.monotonic() - said >= _SAYS_EVERY:
            said = time.monotonic()
            say(f"questions: {number} of {len(missing)} operations, {written} questions")
    there = f"; {there} operations were there" if (there := len(asked) - len(missing)) else ""
    say(f"questions: {len(missing)} operations, {written} questions{there}")


def _splits(recordings: Sequence[Recording]) -> dict[str, str]:
    """The split of each operation. Raises PresageError if none is to learn from, or if an operation is in two splits,
    since it would be learned and tested."""
    found: dict[str, str] = {}
    names = [recording.name for recording in recordings]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise PresageError(f"two recordings are named {twice}; name each once")
    for recording in recordings:
        known = recording.columns("problem", "split")
        for problem, split in zip(known["problem"], known["split"], strict=True):
            if found.setdefault(problem, split) != split:
                both = " and ".join(each or "none" for each in (found[problem], split))
                raise PresageError(f"{problem} is in two splits, {both}; so it would be both learned and tested")
    if "train" not in found.values():
        others = ", ".join(sorted({each or "none" for each in found.values()}))
        raise PresageError(
            f"the recordings have no operations of the train split, to learn from; they are of: {others}"
        )
    return found


def _file(folder: Path, recording: Recording, problem: str) -> Path:
    return folder / f"{recording.name}.{problem}.jsonl"


def draw(
    device: RecordedDevice, problem: str, rows: Sequence[Row], settings: Questions, advisers: Advice | None = None
) -> Iterator[Question]:
    """The questions about one operation's kernels; deterministic for a given seed."""
    rng = random.Random(f"{settings.seed}/{problem}")
    measured = {row.hash: _measured(row) for row in rows}
    working = [row.hash for row in rows if measured[row.hash].times_ns]
    seed = next((row.anchor for row in rows if row.anchor in working), "")
    known: llm_question.Known = {}
    asked = device.problem(problem)
    per_kernel = settings.per_kernel if rows[0].split == "train" else 1
    for row in rows:
        others = [hash for hash in working if hash not in (row.hash, seed)]
        drawn = rng.sample(others, min(len(others), per_kernel))
        wants_seed = bool(seed) and seed != row.hash and (not drawn or rng.random() < 1 / min(2, per_kernel))
        for anchor in ([seed, *drawn] if wants_seed else drawn)[:per_kernel]:
            shown = rng.sample(list(measured), min(len(measured), rng.randint(1, llm_question.NEIGHBOURS)))
            shown = [hash for hash in shown if hash not in (row.hash, anchor)]
            near = [measured[hash] for hash in shown] if rng.random() < settings.neighbours else []
            task = Task(asked, measured[anchor], device.hardware, near, device.kind)
            candidate = Candidate(row.kernel, row.reports)
            log2_S = task.log2_speedup(measured[row.hash])
            adviser = advisers.of(row, rng) if advisers and not asked.is_foreign else None
            (said,) = llm_question.advice(adviser, task, [candidate])
            try:
                text = llm_question.text(task, candidate, known, said)
            except Unreadable:
                continue
            yield Question(
                *(problem, row.room, row.split, row.language, anchor, row.hash),
                *(llm_question.digit_of(log2_S), log2_S, text),
            )


def read(folder: Path, split: str, limit: int = 0, seed: int = 0, is_needed: bool = True) -> list[Question]:
    """The questions of a split in a random order. A limit takes the first questions of this order. is_needed: raise
    PresageError if there are none."""
    if not (folder / FACTS).exists():
        raise PresageError(f"{folder} has no questions; make them first, with --stage questions")
    found = []
    for file in sorted(folder.glob("*.jsonl")):
        try:
            for line in file.read_text(encoding="utf-8").splitlines():
                if (record := json.loads(line))["split"] == split:
                    found.append(Question(**record))
        except (ValueError, KeyError, TypeError) as error:
            raise PresageError(f"{file} is damaged: {error}; remove it, and it is written again") from error
    if is_needed and not found:
        raise PresageError(
            f"{folder} has no questions of the {split} split; the recordings have no operation of it with two kernels,"
            " one of which works"
        )
    random.Random(seed).shuffle(found)
    return found[:limit] if limit else found


def spoken_answer(truth: int, key: str = "") -> str:
    """The target answer of a spoken model: a peak around the right bin. It teaches the form of an answer, not its
    confidence: that is drawn by `key` alone, so that a model learns to say any, and reinforcement learning can reward
    the right one. The reason names the likeliest outcome first, so that one token decides and the others follow.

    >>> spoken_answer(4)[:80]
    '{"reason":"likeliest: p4 at 0.8, fails 0.2","p1":0.01,"p2":0.01,"p3":0.07,"p4":0'
    """
    draw = random.Random(key)
    peak, p_fail = draw.choice(_PEAKS), draw.choice(_FAILS if truth == 0 else _WORKS)
    if truth == 0:
        bins = np.full(scale.BINS, 1 / scale.BINS)
    else:
        bins = np.full(scale.BINS, (1 - peak) * (1 - 2 * _BESIDE) / (scale.BINS - 3))
        bins[max(0, truth - 2) : truth + 1] = (1 - peak) * _BESIDE
        bins[truth - 1] = peak
    cumulated = np.round(np.cumsum(bins / bins.sum()), 2)
    told = np.diff(np.concatenate(([0.0], cumulated)))
    values = {name: round(float(p), 2) for name, p in zip(scale.KEYS, told, strict=True)}
    best = scale.KEYS[truth - 1]
    reason = f"likeliest: {best} at {values[best]}, fails {p_fail}" if truth else f"likeliest: p_fail at {p_fail}"
    return json.dumps({"reason": reason, **values, "p_fail": p_fail}, separators=(",", ":"))


def claim_for(config: Config, folder: Path, recordings: Sequence[str] = ()) -> None:
    """Record the settings of the questions in a folder. Raises PresageError if it has questions of other settings."""
    claim(folder / FACTS, config, ["questions"], "the questions in {} were", recordings=recordings)


def claim(file: Path, config: Config, parts: Sequence[str], what: str, source: str = "", **more: Any) -> None:
    """Record in a file the settings that a stage begins with. Raises PresageError if it was begun with others. source:
    a digest of what else the stage depends on."""
    digest, chosen = config.digest(*parts) + source, config.flat(*parts)
    if not file.exists():
        write_whole(file, json.dumps({"settings": digest, "chosen": chosen, **more}) + "\n")
        return
    try:
        begun = dict(json.loads(file.read_text()))
    except (ValueError, TypeError):
        begun = {}
    if begun.get("settings") != digest:
        known = begun.get("chosen", {})
        others = [f"{name} was {known[name]}, now {chosen[name]}" for name in known if known[name] != chosen.get(name)]
        raise PresageError(
            f"{what.format(file.parent)} begun with other {'settings' if others or not known else 'questions'}"
            f"{': ' * bool(others)}{', '.join(others)}; give another folder with --into, or remove it"
        )


def _measured(row: Row) -> Measured:
    return Measured(row.kernel, row.reports, {case.case: case.median.value for case in row.cases}, str(row.status))
