"""`presage train llm`: the stages in order. A finished stage is skipped, and an interrupted one is continued."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from presage.core.errors import PresageError
from presage.core.files import write_whole
from presage.devices.recording import Recording
from presage.forecasters import llm_question
from presage.llm.prompts import answer_ids
from presage.llm.readout import ReadOut
from presage.llm.weights import import_libraries, load, load_tokenizer
from presage.store.lock import Lock
from presage.train import card, conversations, grpo, merging, questions, scores, sft
from presage.train.config import STAGES, Config
from presage.train.conversations import Conversation
from presage.train.questions import Question

FACTS = "facts.json"
LOCK = "lock"
_LESS = {"sft": "sft.pass_tokens", "grpo": "grpo.answers_at_once"}
"""The setting that decides how much memory a stage needs."""
_DISK_FULL = ("No space left on device", "inline_container")
"""What the errors of tokenizers and of torch say, which have no error number."""
_MOST_ANSWERS = 20
"""The most tokens for which endpoints return probabilities."""


def run(
    config: Config,
    recordings: Sequence[Recording],
    into: Path,
    stages: Sequence[str] = (),
    say: Callable[[str], None] = print,
) -> dict[str, Any]:
    """Run these stages, by default all that the configuration's mode needs, and write the model's description and card.
    Returns the facts of the card."""
    if unknown := [stage for stage in stages if stage not in STAGES]:
        raise PresageError(f"there is no stage '{unknown[0]}'; there are: {', '.join(STAGES)}")
    if "grpo" in stages and config.mode != "spoken":
        raise PresageError("a model that is read out has no stage grpo: give --mode spoken")
    wanted = [stage for stage in STAGES if stage in (stages or config.stages)]
    with _alone(into) as is_first:
        return _run(config, recordings, into, wanted, say if is_first else _unsaid)


def _run(
    config: Config, recordings: Sequence[Recording], into: Path, wanted: Sequence[str], say: Callable[[str], None]
) -> dict[str, Any]:
    asked = into / "questions"
    if "questions" in wanted and "sft" in wanted and not asked.exists():
        _check_model(config)
    with _one_first() as is_first:
        facts = _Facts(into, is_first)
        if "questions" in wanted and is_first:
            questions.make(config, recordings, asked, say)
            facts.add("recordings", [recording.name for recording in recordings])
    if "sft" in wanted or "grpo" in wanted:
        learned = questions.read(asked, "train", config.sft.limit, config.sft.seed)
        questions.claim_for(config, asked)
        facts.add("questions", {"train": len(learned)})
        facts.add("machine", _machine())
    for stage in wanted[wanted.index("questions") + 1 :] if "questions" in wanted else wanted:
        with _timed(stage, into, facts):
            if stage == "sft":
                asked_of = [each.conversation(config.mode) for each in learned]
                sft.train(config, asked_of, llm_question.ANSWERS, into / "sft", say)
            else:
                grpo.train(config, learned, _result_of_sft(into / "sft", say), into / "grpo", say)
        with _one_first() as is_first:
            if is_first:
                _describe(config, into, asked, stage, facts, say)
                card.write(into, config, facts.known)
    return facts.known


def merge(into: Path, say: Callable[[str], None] = print) -> None:
    """Merge the adapter of a trained model into its weights; under `accelerate launch`, the first process does."""
    with _alone(into) as is_first:
        if is_first:
            merging.merge(into, say)


def _check_model(config: Config) -> None:
    """Raise PresageError before the questions are made, which takes long, if there is no such model, or if its
    tokenizer does not suit the mode."""
    tokenizer = load_tokenizer(config.model)
    if config.mode == "readout":
        answer_ids(tokenizer, llm_question.ANSWERS)
    else:
        sft.check_ends(tokenizer)


def _result_of_sft(folder: Path, say: Callable[[str], None]) -> Path | None:
    """The result of the second stage, for the third; None if there was no second stage."""
    if (folder / sft.RESULT / "done").exists():
        return folder / sft.RESULT
    if folder.exists():
        raise PresageError("the stage sft was begun and is not done; finish it first, with --stage sft")
    say("grpo: begins from the base model, since there is no result of sft")
    return None


def run_own(config: Config, folder: Path, into: Path, say: Callable[[str], None] = print) -> dict[str, Any]:
    """Supervised training on a user's own questions. For a model that is read out, also fit its temperature and score
    it."""
    with _alone(into) as is_first:
        return _run_own(config, folder, into, say if is_first else _unsaid)


def _run_own(config: Config, folder: Path, into: Path, say: Callable[[str], None]) -> dict[str, Any]:
    learned = conversations.read(folder, "train", config.sft.limit, config.sft.seed)
    held = conversations.read(folder, "validation", config.questions.validation)
    answers = conversations.answers(learned)
    if config.mode == "readout":
        _refuse_many(answers, held)
    with _one_first() as is_first:
        facts = _Facts(into, is_first)
    facts.add("own", folder.name)
    facts.add("questions", {"train": len(learned), "validation": len(held)})
    facts.add("machine", _machine())
    with _timed("sft", into, facts):
        sft.train(config, learned, answers, into / "sft", say, conversations.digest(folder))
    with _one_first() as is_first:
        if is_first:
            chosen = answers if config.mode == "readout" else []
            sft.description(config, "sft", answers=chosen).write(into)
            if config.mode == "readout":
                told, temperature = validate_own(into, held, answers)
                sft.description(config, "sft", temperature, chosen).write(into)
                facts.add("scores", told)
                say(f"validation: {', '.join(f'{k} {v:.4g}' for k, v in told['after recalibration'].items())}")
            card.write(into, config, facts.known)
    return facts.known


def _refuse_many(answers: Sequence[str], held: Sequence[Conversation]) -> None:
    if not 2 <= len(answers) <= _MOST_ANSWERS:
        raise PresageError(
            f"there are {len(answers)} different answers; a model that is read out chooses among 2 to {_MOST_ANSWERS} "
            "words of one token each: give --mode spoken for others"
        )
    if unknown := sorted({each.answer for each in held} - set(answers)):
        raise PresageError(f"the answer {unknown[0]!r} of the validation split is nowhere in the train split")


@contextmanager
def _alone(into: Path) -> Iterator[bool]:
    """Hold the lock of the folder. Under `accelerate launch`, the first process holds it for all; yields whether this
    is the first."""
    into.mkdir(parents=True, exist_ok=True)
    if int(os.environ.get("RANK", "0")):
        yield False
        return
    with closing(Lock(into / LOCK)):
        yield True


def _unsaid(line: str) -> None:
    """Discard the messages of further processes."""


@contextmanager
def _timed(stage: str, into: Path, facts: _Facts) -> Iterator[None]:
    """Add the seconds of a stage to the facts, with those before an interruption. Explain a lack of memory or disk."""
    if (into / stage / sft.RESULT / "done").exists():
        yield
        return
    before = sft.seconds(into / stage) if stage == "sft" else grpo.seconds(into / stage)
    start = time.monotonic()
    torch, _ = import_libraries()
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise PresageError(
            f"{stage}: the GPU's memory does not suffice; with a lower {_LESS[stage]}, or with recompute = true, the"
            " same command goes on from its last checkpoint"
        ) from error
    except Exception as error:
        if any(words in str(error) for words in _DISK_FULL):
            raise PresageError(
                f"{stage}: the disk of {into} is full; with more room, the same command goes on where it was"
            ) from error
        raise
    told = {"seconds": round(before + time.monotonic() - start, 1)}
    if stage == "grpo":
        told |= grpo.gain(into / stage)
    facts.add("stages", {stage: told})


@contextmanager
def _one_first() -> Iterator[bool]:
    """Whether this is the main process of `accelerate launch`, which alone writes files. At the end of the block, the
    processes wait for each other."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield True
        return
    import accelerate

    torch, _ = import_libraries()
    together = accelerate.PartialState(cpu=not torch.cuda.is_available())
    yield together.is_main_process
    together.wait_for_everyone()


def _describe(config: Config, into: Path, asked: Path, stage: str, facts: _Facts, say: Callable[[str], None]) -> None:
    """Write the description and the settings of the model. If it is read out, fit its temperature and score it."""
    sft.description(config, stage).write(into)
    if config.mode == "readout":
        held = questions.read(asked, "validation", config.questions.validation, is_needed=False)
        facts.add("questions", {"validation": len(held)})
        if held:
            told, temperature = validate(into, held)
            sft.description(config, stage, temperature).write(into)
            facts.add("scores", told)
            after = told["after recalibration"]
            missing = f", {after['missing']:.0%} not answered by a digit" if after["missing"] else ""
            told_scores = f"exact {after['exact']:.3f}, rps {after['rps']:.4f}, spearman {after['spearman']:.3f}"
            say(f"validation: {told_scores}{missing}")
        else:
            say("validation: the recordings have no questions of this split, so no temperature is fitted")
    advised = "true" if config.questions.advised else "false"
    settings = {"mode": config.mode, "temperature": _temperature(into), "model": into.name, "advised": advised}
    write_whole(into / "llm.toml", _SETTINGS.format(**settings))


_SETTINGS = """# Settings for what 'presage llm serve --model {model}' serves: PRESAGE_LLM_CONFIG=llm.toml
[llm]
model = "{model}"
mode = "{mode}"
prompt = "compact"
advised = {advised}
readout_temperature = {temperature}
concurrency = 32
"""


Scores = dict[str, dict[str, float]]


def validate(model: Path, held: Sequence[Question]) -> tuple[Scores, float]:
    """The scores of a model that is read out, and its fitted temperature."""
    reader = ReadOut(load(str(model)), llm_question.ANSWERS)
    logs = reader.log_probabilities([llm_question.conversation(each.text, "readout") for each in held])
    logs[~llm_question.is_answer(logs)] = np.nan  # `llm` gives no forecast for these
    truth, problems = [each.truth for each in held], [each.problem for each in held]
    return _scored(logs, truth, problems, lambda p: scores.score(p, held))


def validate_own(model: Path, held: Sequence[Conversation], answers: Sequence[str]) -> tuple[Scores, float]:
    """The same for answers to a user's own questions."""
    weights = load(str(model), sees=any(each.has_pictures for each in held))
    logs = ReadOut(weights, answers).log_probabilities([each.messages for each in held])
    truth = [answers.index(each.answer) for each in held]
    return _scored(logs, truth, [each.group for each in held], lambda p: scores.score_answers(p, truth))


def _scored(
    logs: scores.Floats, truth: Sequence[int], groups: Sequence[str], score: Callable[[scores.Floats], dict[str, float]]
) -> tuple[Scores, float]:
    """Scores before and after recalibration by a temperature, and the temperature fitted to all groups. For the scores,
    each half of the groups gets the temperature that is fitted to the other half."""
    p = scores.warmed(logs, 1.0)
    names = sorted(set(groups))
    first = np.array([names.index(group) % 2 == 0 for group in groups])
    halves = [(half, ~half) for half in (first, ~first) if half.any() and (~half).any()]
    after = p.copy()
    for half, rest in halves:
        fitted = scores.fit_temperature(p[half], np.array(truth)[half])
        after[rest] = scores.warmed(logs[rest], fitted)
    told = {"before recalibration": score(p), "after recalibration": score(after)}
    return told, scores.fit_temperature(p, truth)


class _Facts:
    """Facts about a training, in a file that each stage adds to."""

    def __init__(self, into: Path, is_written: bool) -> None:
        self._file, self._is_written = into / FACTS, is_written
        into.mkdir(parents=True, exist_ok=True)
        try:
            self.known: dict[str, Any] = dict(json.loads(self._file.read_text()))
        except (OSError, TypeError, ValueError):
            self.known = {}

    def add(self, name: str, value: Any) -> None:
        if isinstance(value, dict):
            value = {**self.known.get(name, {}), **value}
        self.known[name] = value
        if self._is_written:
            write_whole(self._file, json.dumps(self.known, indent=1) + "\n")


def _temperature(into: Path) -> float:
    from presage.llm.weights import described

    return round(described(str(into)).temperature, 4)


def _machine() -> str:
    torch, _ = import_libraries()
    if torch.cuda.is_available():
        return f"{torch.cuda.device_count()} x {torch.cuda.get_device_name()}"
    return f"{platform.machine()}, {torch.get_num_threads()} threads"
