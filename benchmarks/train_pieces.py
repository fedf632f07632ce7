"""The pieces of the experiments of train_claims.py: which there are, and how each is trained and asked.

Each piece begins with the same model, and tells what it found as plain values. A and B need neither trl nor datasets.
"""

from __future__ import annotations

import gzip
import itertools
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from presage.llm.readout import ReadOut
    from presage.llm.weights import Weights
    from presage.train.config import Config
    from presage.train.questions import Question

ANSWERED = ("validation", "test_op", "test_family")
"""What is asked about every kernel of these splits: on the first, shares and temperatures can be fitted."""
MODULES = ("validation", "test_problem")
"""The same of a recording of modules."""
LOSSES = ("rps", "log", "brier")
REWARDS = ("correctness", "correctness+brier", "correctness+rps")
SEEDS = (0, 1, 2)
RANK = 14
"""Of an adapter of the small model, so that its file stays below 16 MiB."""
ALL_WEIGHTS = 0
ALL_RATE = 5e-5
"""The learning rate of all weights."""
_LOGGED = ("reward", "frac_reward_zero_std", "completions/mean_length", "step_time", "entropy")


@dataclass(frozen=True)
class Piece:
    """One line of the results."""

    name: str
    kind: str
    """A name in `_KINDS`."""
    estimate: int
    """Seconds on one H200."""
    seed: int = 0
    loss: str = "rps"
    reward: str = "correctness"
    limit: int = sys.maxsize
    """Questions that are learned from, at most."""
    advised: bool = False
    """Whether questions say what `learned` forecasts."""
    rank: int = RANK
    learning_rate: float = 5e-4
    splits: tuple[str, ...] = ()
    """Those whose every question is answered."""
    is_kept: bool = False
    """Whether what was trained is copied beside the results."""

    @property
    def folder(self) -> str:
        return self.name.replace("/", "_").replace("+", "_")


def _of_a() -> Iterator[Piece]:
    yield Piece("A/untrained", "untrained", 20)
    yield Piece("A/data1000", "read_out", 30, limit=1000)
    yield Piece("A/data4000", "read_out", 75, limit=4000)
    yield Piece("A/data16000", "read_out", 330, limit=16_000, splits=ANSWERED, is_kept=True)
    yield Piece("A/log16000", "read_out", 330, limit=16_000, loss="log", splits=ANSWERED, is_kept=True)
    yield Piece("A/every", "read_out", 600, loss="log", splits=ANSWERED, is_kept=True)
    yield Piece("A/weights4000", "read_out", 150, limit=4000, rank=ALL_WEIGHTS, learning_rate=ALL_RATE)
    yield Piece(
        "A/weights16000", "read_out", 330, limit=16_000, rank=ALL_WEIGHTS, learning_rate=ALL_RATE, splits=ANSWERED
    )  # fmt: skip
    yield Piece("A/speed", "speed", 25)
    for seed, loss in itertools.product(SEEDS, LOSSES):
        yield Piece(f"A/{loss}/seed{seed}", "read_out", 40, seed=seed, loss=loss, limit=2000)


def _of_b() -> Iterator[Piece]:
    yield Piece("B/data4000", "read_out", 240, limit=4000, loss="log", rank=16, is_kept=True)
    yield Piece("B/small4000", "read_out", 130, limit=4000, loss="log")


def _of_d() -> Iterator[Piece]:
    yield Piece("D/untrained", "untrained", 20, advised=True)
    yield Piece("D/data1000", "read_out", 30, limit=1000, advised=True)
    yield Piece("D/data4000", "read_out", 170, limit=4000, advised=True, splits=ANSWERED)
    yield Piece("D/data16000", "read_out", 330, limit=16_000, advised=True, splits=ANSWERED, is_kept=True)
    for seed, loss in itertools.product(SEEDS, LOSSES):
        yield Piece(f"D/{loss}/seed{seed}", "read_out", 40, seed=seed, loss=loss, limit=2000, advised=True)


def _of_c() -> Iterator[Piece]:
    yield Piece("C/sft", "spoken", 125, limit=4000)
    yield Piece("C/cost", "cost", 30)
    for seed, reward in itertools.product(SEEDS, REWARDS):
        yield Piece(f"C/{reward}/seed{seed}", "rewarded", 140, seed=seed, reward=reward)


def _of_e() -> Iterator[Piece]:
    yield Piece("E/modules", "read_out", 150, limit=10_000, loss="log", splits=MODULES, is_kept=True)


EXPERIMENTS: Mapping[str, tuple[Piece, ...]] = {
    "A": tuple(_of_a()), "B": tuple(_of_b()), "C": tuple(_of_c()), "D": tuple(_of_d()),
    "E": tuple(_of_e()),
}  # fmt: skip


@dataclass(frozen=True)
class Sizes:
    """How much of everything."""

    learned: int = sys.maxsize
    """Questions that a piece learns from, at most."""
    steps: int = 0
    batch: int = 16
    pass_tokens: int = 49_152
    read_tokens: int = 65_536
    """Of a pass that reads out."""
    validation: int = 2000
    answered: int = sys.maxsize
    """Questions of a test split, at most."""
    timed: int = 3000
    """Questions whose reading out is timed, in passes of each of these sizes."""
    timed_tokens: tuple[int, ...] = (16_384, 65_536)
    rewarded: int = 4000
    """Questions whose second half earns rewards."""
    rewarded_steps: int = 24
    rewarded_questions: int = 8
    answers: int = 8
    answer_tokens: int = 144
    answers_at_once: int = 4
    spoken: int = 800
    """Validation questions that are answered in words, and how many at once."""
    spoken_at_once: int = 200
    precision: str = ""
    compiled: bool = True


FULL = Sizes()
TINY = Sizes(
    learned=24, steps=3, batch=8, pass_tokens=4096, read_tokens=4096, validation=24, answered=16, timed=16,
    timed_tokens=(4096,), rewarded=64, rewarded_steps=2, rewarded_questions=2, answers=4, answer_tokens=40,
    answers_at_once=8, spoken=8, spoken_at_once=8, precision="fp32", compiled=False,
)  # fmt: skip


@dataclass(frozen=True)
class Place:
    """Where a piece begins, and where it puts what it makes."""

    base: str
    """The model."""
    data: Path
    work: Path
    out: Path
    """The folder of the results."""
    sizes: Sizes

    def asked(self, piece: Piece) -> Path:
        """The folder of the piece's questions."""
        return self.data / "advised" if piece.advised else self.data

    def questions(self, piece: Piece, split: str, limit: int = 0) -> list[Question]:
        """The first of those that `train_claims.py questions` wrote, which are in a random order."""
        from presage.train.questions import Question

        rows = unpacked(self.asked(piece) / f"questions_{split}.jsonl.gz")
        return [Question(**row) for row in itertools.islice(rows, limit or None)]

    @property
    def begun(self) -> Path | None:
        """What C/sft has trained, where it was run here."""
        result = self.work / "C_sft" / "result"
        return result if result.exists() else None


def unpacked(file: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def run(place: Place, piece: Piece) -> dict[str, Any]:
    """Train what the piece trains, ask it, and tell what came of it."""
    return _KINDS[piece.kind](place, piece)


def config(place: Place, piece: Piece, mode: str) -> Config:
    from presage.train.config import Config, Grpo, Sft

    sizes = place.sizes
    sft = Sft(
        loss=piece.loss, seed=piece.seed, lora_rank=piece.rank, limit=_limit(place, piece), epochs=1.0,
        steps=sizes.steps, batch=sizes.batch, compiled=sizes.compiled, pass_tokens=sizes.pass_tokens,
        learning_rate=piece.learning_rate,
        checkpoint_seconds=240.0 if piece.rank == ALL_WEIGHTS else 30.0,
    )  # fmt: skip
    grpo = Grpo(
        reward=piece.reward, seed=piece.seed, steps=sizes.rewarded_steps, questions=sizes.rewarded_questions,
        answers=sizes.answers, tokens=sizes.answer_tokens, learning_rate=1e-4, checkpoint_steps=5,
        answers_at_once=sizes.answers_at_once,
    )  # fmt: skip
    return Config(place.base, mode=mode, precision=sizes.precision, sft=sft, grpo=grpo)


def _limit(place: Place, piece: Piece) -> int:
    return min(piece.limit, place.sizes.learned)


# -- read out ----------------------------------------------------------------------------------------------------------


def read_out(place: Place, piece: Piece) -> dict[str, Any]:
    import torch

    from presage.forecasters import llm_question
    from presage.train import sft

    folder = place.work / piece.folder
    questions = place.questions(piece, "train", _limit(place, piece))
    start = time.monotonic()
    conversations = [question.conversation("readout") for question in questions]
    result = sft.train(config(place, piece, "readout"), conversations, llm_question.ANSWERS, folder)
    seconds = time.monotonic() - start
    log = _log(folder)
    told = {
        "train_seconds": round(seconds, 1),
        "steps": len(log),
        "loss_first": log[0]["loss"],
        "loss_last": log[-1]["loss"],
        "tokens_per_second": round(sum(step["tokens"] for step in log) / max(1e-9, log[-1]["seconds"])),
        "memory_gb": round(torch.cuda.max_memory_allocated() / 1e9, 1) if torch.cuda.is_available() else None,
    }
    has_all_weights = piece.rank == ALL_WEIGHTS
    told |= asked(place, piece, str(result)) if has_all_weights else asked(place, piece, place.base, result)
    if piece.is_kept and place.out.resolve() != place.work.resolve():
        shutil.copytree(result, place.out / piece.folder, dirs_exist_ok=True)
    if has_all_weights:  # it is as large as the model, thrice
        (folder / "checkpoint.safetensors").unlink(missing_ok=True)
    return told


def untrained(place: Place, piece: Piece) -> dict[str, Any]:
    return asked(place, piece, place.base)


def asked(place: Place, piece: Piece, model: str, adapter: Path | None = None) -> dict[str, Any]:
    """Scores on the validation split, on which the temperature is fitted; and the answers to the piece's splits."""
    from presage.train import scores

    reader = _reader(model, adapter, place.sizes.read_tokens)
    held = place.questions(piece, "validation", place.sizes.validation)
    start = time.monotonic()
    logs = _read(reader, [question.text for question in held])
    seconds = time.monotonic() - start
    probabilities = scores.warmed(logs, 1.0)
    temperature = scores.fit_temperature(probabilities, [question.truth for question in held])
    for split in piece.splits:
        write_answers(place, piece, reader, split, temperature)
    return {
        "readouts_per_second": round(len(held) / seconds, 1),
        "validation": scores.score(probabilities, held),
        "temperature": temperature,
        "mass": float(np.exp(logs).sum(1).mean()),
    }


def write_answers(place: Place, piece: Piece, reader: ReadOut, split: str, temperature: float) -> None:
    """What the model says to all that `presage evaluate` would ask, as logarithms; NaN where it is not asked."""
    from presage.forecasters import llm_question

    rows = list(unpacked(place.asked(piece) / f"evaluate_{split}.jsonl.gz"))
    valid = [i for i, row in enumerate(rows[: place.sizes.answered]) if row["text"] is not None]
    logs = np.full((len(rows), len(llm_question.ANSWERS)), np.nan, dtype=np.float32)
    logs[valid] = _read(reader, [rows[i]["text"] for i in valid])
    np.savez_compressed(place.out / f"{piece.folder}_{split}.npz", logs=logs, temperature=temperature)


def speed(place: Place, piece: Piece) -> dict[str, Any]:
    """Read-outs a second, after a first few."""
    texts = [question.text for question in place.questions(piece, "train", place.sizes.timed)]
    told = {}
    for tokens in place.sizes.timed_tokens:
        reader = _reader(place.base, None, tokens)
        _read(reader, texts[:8])
        start = time.monotonic()
        _read(reader, texts[8:])
        told[f"batch {tokens}"] = round((len(texts) - 8) / (time.monotonic() - start), 1)
    return {"readouts_per_second": told}


def _reader(model: str, adapter: Path | None, tokens: int) -> ReadOut:
    from presage.forecasters import llm_question
    from presage.llm import weights
    from presage.llm.readout import ReadOut

    return ReadOut(weights.load(model, adapter), llm_question.ANSWERS, tokens)


def _read(reader: ReadOut, texts: list[str]) -> Any:
    from presage.forecasters import llm_question

    return reader.log_probabilities([llm_question.conversation(text, "readout") for text in texts])


# -- spoken ------------------------------------------------------------------------------------------------------------


def spoken(place: Place, piece: Piece) -> dict[str, Any]:
    """The form of an answer, which the pieces with rewards begin with."""
    from presage.train import sft

    folder = place.work / piece.folder
    conversations = [each.conversation("spoken") for each in place.questions(piece, "train", _limit(place, piece))]
    sft.train(config(place, piece, "spoken"), conversations, (), folder)
    return {"log": _log(folder)}


def rewarded(place: Place, piece: Piece) -> dict[str, Any]:
    from presage.train import grpo

    folder = place.work / piece.folder
    questions = place.questions(piece, "train", place.sizes.rewarded)[-2000:]
    result = grpo.train(config(place, piece, "spoken"), questions, place.begun, folder)
    log = [{key: step[key] for key in _LOGGED if key in step} for step in _log(folder)]
    return {"log": log, "spoken": said(place, piece, result)}


def cost(place: Place, piece: Piece) -> dict[str, Any]:
    return {"sft_alone": said(place, piece, place.begun), "base": said(place, piece, None)}


def said(place: Place, piece: Piece, adapter: Path | None) -> dict[str, float]:
    """Scores of validation questions that are answered in words, once each; what cannot be read is missing."""
    from presage.llm import weights
    from presage.train import scores

    sizes = place.sizes
    held = place.questions(piece, "validation", sizes.spoken)
    loaded = weights.load(place.base, adapter)
    start = time.monotonic()
    texts = [each.text for each in held]
    probabilities, tokens = answered_in_words(loaded, texts, sizes.answer_tokens, sizes.spoken_at_once)
    seconds = time.monotonic() - start
    found = scores.score(probabilities, held)
    return {**found, "tokens_each": tokens / len(held), "per_second": len(held) / seconds}


def answered_in_words(loaded: Weights, texts: Sequence[str], longest: int, at_once: int) -> tuple[Any, int]:
    """What a model says to each question: the probabilities of failure and of each bin, NaN where its answer cannot be
    read; and how many tokens it said in all."""
    import torch

    from presage.forecasters import llm_question
    from presage.llm import prompts

    tokenizer = loaded.tokenizer
    tokenizer.padding_side = "left"
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    probabilities, tokens = [], 0
    for first in range(0, len(texts), at_once):
        some = [llm_question.conversation(each, "spoken") for each in texts[first : first + at_once]]
        ids = prompts.all_prompt_ids(tokenizer, some)
        batch = tokenizer.pad({"input_ids": ids}, return_tensors="pt").to(loaded.device)
        torch.manual_seed(0)
        with torch.inference_mode():
            written = loaded.model.generate(
                **batch, max_new_tokens=longest, do_sample=True, temperature=1.0, top_k=0, top_p=1.0,
                pad_token_id=tokenizer.pad_token_id,
            )  # fmt: skip
        for answer in written[:, batch["input_ids"].shape[1] :]:
            tokens += int((answer != tokenizer.pad_token_id).sum())
            probabilities.append(understood(tokenizer.decode(answer, skip_special_tokens=True)))
    return np.array(probabilities), tokens


def understood(text: str) -> Any:
    """The probabilities of failure and of each bin; NaN where the answer cannot be read."""
    from presage.forecasters import llm_question
    from presage.forecasters.llm import parse
    from presage.llm.answers import Answer
    from presage.llm.structured import MalformedError
    from presage.train import rewards

    try:
        return rewards.outcomes(parse(Answer(text)).forecast)
    except MalformedError:
        return np.full(len(llm_question.ANSWERS), np.nan)


def _log(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


_KINDS: Mapping[str, Callable[[Place, Piece], dict[str, Any]]] = {
    "read_out": read_out,
    "untrained": untrained,
    "speed": speed,
    "spoken": spoken,
    "rewarded": rewarded,
    "cost": cost,
}
