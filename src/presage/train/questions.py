"""The first stage: turn a recording into questions with their right answers, a JSON-lines file for each operation.

Operations keep their split: the `train` split is for training; the `validation` split is for fitting a temperature and
for scores during training. Test splits are not written: `presage evaluate` asks about them. Anchors are mixed (the seed
kernel, then others at random), some questions show measured neighbours, and kernels that fail are included. Questions
have a random order that is known before they are made, so that a limit makes only the first ones.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import random
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
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
_READ_TOGETHER = 16
"""The operations whose rows are read at once: reading a file for each takes longer, and all rows take much memory."""
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
    number: int = 0
    """Which of the questions about this kernel it is."""

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
    maker = _Maker(config.questions, recordings, folder, say, advisers)
    limit, seed = _made(folder)
    left = {
        "train": _Places(recordings, splits, "train", config.questions.per_kernel, seed, limit),
        "validation": _Places(recordings, splits, "validation", 1, 0, config.questions.validation),
    }
    part = 0
    while now := [place for each in left.values() for place in each.take()]:
        for problem, made in maker.make(now, part):
            left[splits[problem]].made += made
        part += 1
    maker.tell()


Place = tuple[str, str, str, int]
"""What a question is about before it is made: the recording, the operation, the kernel's hash, and its number."""


class _Places:
    """The places of a split's questions in their order, of which as many are taken as questions are lacking."""

    def __init__(
        self, recordings: Sequence[Recording], splits: Mapping[str, str], split: str, each: int, seed: int, limit: int
    ) -> None:
        self.made, self._limit, self._taken = 0, limit or math.inf, 0
        kernels = (
            (recording.name, problem, hash)
            for recording in recordings
            for problem, hash in zip(*recording.columns("problem", "hash").values(), strict=True)
            if splits[problem] == split
        )
        self._places = sorted(
            ((*kernel, number) for kernel in kernels for number in range(each)),
            key=lambda place: _order(seed, *place[1:]),
        )

    def take(self) -> list[Place]:
        """The next ones: some of those before gave no question."""
        end = min(self._taken + self._limit - self.made, len(self._places))
        taken = self._places[self._taken : int(end)]
        self._taken = int(end)
        return taken


def _order(seed: int, problem: str, kernel: str, number: int) -> bytes:
    """The key of a question in the random order of this seed."""
    return hashlib.blake2b(f"{seed}/{problem}/{kernel}/{number}".encode(), digest_size=8).digest()


class _Maker:
    """Writes files of questions, and says how far it is."""

    def __init__(
        self,
        settings: Questions,
        recordings: Sequence[Recording],
        folder: Path,
        say: Callable[[str], None],
        advisers: Advice | None,
    ) -> None:
        self._settings, self._recordings, self._folder = settings, recordings, folder
        self._say, self._advisers = say, advisers
        self._operations = self._written = self._there = 0
        self._said = time.monotonic()

    def make(self, places: Sequence[Place], part: int) -> list[tuple[str, int]]:
        """Write the missing files with the questions at these places. Returns the operation of each file, and how many
        questions it has."""
        wanted: dict[tuple[str, str], set[tuple[str, int]]] = {}
        for name, problem, kernel, number in places:
            wanted.setdefault((name, problem), set()).add((kernel, number))
        missing = [key for key in wanted if not _file(self._folder, *key, part).exists()]
        self._there += len(wanted) - len(missing)
        told = len(missing) + self._operations
        for recording in self._recordings:
            problems = [problem for name, problem in sorted(missing) if name == recording.name]
            for first in range(0, len(problems), _READ_TOGETHER):
                device = RecordedDevice(recording)
                for problem, found in device.each(problems[first : first + _READ_TOGETHER]):
                    self._write(device, problem, list(found.values()), wanted[recording.name, problem], part)
                    self._operations += 1
                    if time.monotonic() - self._said >= _SAYS_EVERY:
                        self._said = time.monotonic()
                        self._say(f"questions: {self._operations} of {told} operations, {self._written} questions")
        files = ((problem, _file(self._folder, name, problem, part)) for name, problem in wanted)
        return [(problem, len(file.read_text(encoding="utf-8").splitlines())) for problem, file in files]

    def _write(
        self, device: RecordedDevice, problem: str, rows: list[Row], wanted: Collection[tuple[str, int]], part: int
    ) -> None:
        rows = [row for row in rows if row.family not in _BASELINES and (row.source or row.reports)]
        drawn = list(draw(device, problem, rows, self._settings, self._advisers, wanted)) if rows else []
        lines = "".join(json.dumps(dataclasses.asdict(each)) + "\n" for each in drawn)
        write_whole(_file(self._folder, device.recording.name, problem, part), lines)
        self._written += len(drawn)

    def tell(self) -> None:
        there = f"; {self._there} operations were there" if self._there else ""
        self._say(f"questions: {self._operations} operations, {self._written} questions{there}")


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


def _file(folder: Path, recording: str, problem: str, part: int) -> Path:
    return folder / f"{recording}.{problem}{f'.{part}' if part else ''}.jsonl"


def draw(
    device: RecordedDevice,
    problem: str,
    rows: Sequence[Row],
    settings: Questions,
    advisers: Advice | None = None,
    wanted: Collection[tuple[str, int]] | None = None,
) -> Iterator[Question]:
    """The questions about one operation's kernels; deterministic for a given seed. wanted: the hash of the kernel and
    the number of those to make; None makes all, and the same ones."""
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
        for number, anchor in enumerate(([seed, *drawn] if wants_seed else drawn)[:per_kernel]):
            shown = rng.sample(list(measured), min(len(measured), rng.randint(1, llm_question.NEIGHBOURS)))
            shown = [hash for hash in shown if hash not in (row.hash, anchor)]
            near = [measured[hash] for hash in shown] if rng.random() < settings.neighbours else []
            task = Task(asked, measured[anchor], device.hardware, near, device.kind)
            candidate = Candidate(row.kernel, row.reports)
            log2_S = task.log2_speedup(measured[row.hash])
            adviser = advisers.of(row, rng) if advisers and not asked.is_foreign else None
            if wanted is not None and (row.hash, number) not in wanted:
                continue
            (said,) = llm_question.advice(adviser, task, [candidate])
            try:
                text = llm_question.text(task, candidate, known, said)
            except Unreadable:
                continue
            yield Question(
                *(problem, row.room, row.split, row.language, anchor, row.hash),
                *(llm_question.digit_of(log2_S), log2_S, text, number),
            )


def read(folder: Path, split: str, limit: int = 0, seed: int = 0, is_needed: bool = True) -> list[Question]:
    """The questions of a split in a random order. A limit takes the first questions of this order. is_needed: raise
    PresageError if there are none."""
    if not (folder / FACTS).exists():
        raise PresageError(f"{folder} has no questions; make them first, with --stage questions")
    files = sorted(folder.glob("*.jsonl"))
    found = [each for file in files for each in _questions_of(file) if each.split == split]
    if is_needed and not found:
        raise PresageError(
            f"{folder} has no questions of the {split} split; the recordings have no operation of it with two kernels,"
            " one of which works"
        )
    found.sort(key=lambda each: _order(seed, each.problem, each.kernel, each.number))
    return found[:limit] if limit else found


def _questions_of(file: Path) -> list[Question]:
    try:
        return [Question(**json.loads(line)) for line in file.read_text(encoding="utf-8").splitlines()]
    except (ValueError, TypeError) as error:
        raise PresageError(f"{file} is damaged: {error}; remove it, and it is written again") from error


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
    """Record the settings of the questions in a folder. Raises PresageError if it has questions of other settings, or
    too few: one with all questions serves any limit."""
    limit, seed = config.sft.limit, config.sft.seed
    claim(
        *(folder / FACTS, config, ["questions"], "the questions in {} were"),
        recordings=recordings, limit=limit, seed=seed if limit else 0,
    )  # fmt: skip
    made, of_seed = _made(folder)
    if made and (seed != of_seed or not 0 < limit <= made):
        raise PresageError(
            f"{folder} has only the first {made} questions in the order of seed {of_seed}; for others give another "
            "folder with --into, or remove it"
        )


def _made(folder: Path) -> tuple[int, int]:
    """How many questions of the train split a folder was begun with, 0 for all; and the seed of their order."""
    facts = json.loads((folder / FACTS).read_text())
    return int(facts.get("limit", 0)), int(facts.get("seed", 0))


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
