"""`presage train learned | operators | modules | llm`: train a model on recordings."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from presage.cli import documents, terminal
from presage.core.errors import PresageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "forecaster",
        choices=["learned", "operators", "modules", "llm"],
        help="what to train: the forecaster `learned`, its model of operators, that of modules, or a language model",
    )
    parser.add_argument(
        "--recording",
        action="append",
        default=[],
        metavar="NAME|FILE",
        help="a recording to learn from; may be repeated (default: the configuration's, or all that are installed)",
    )
    parser.add_argument(
        "--into",
        type=Path,
        metavar="FOLDER",
        help="where to write the model (default: models/NAME)",
    )
    llm = parser.add_argument_group("a language model (needs the extra train)")
    llm.add_argument("--config", metavar="NAME|FILE", help="how to train: a shipped configuration or a TOML file")
    llm.add_argument(
        "--questions", type=Path, metavar="FOLDER", help="learn from conversations of your own, not from recordings"
    )
    llm.add_argument("--list", action="store_true", help="list the shipped configurations and what they cost")
    llm.add_argument(
        "--stage", action="append", default=[], choices=_STAGES, help="only this stage; may be repeated (default: all)"
    )
    llm.add_argument("--model", metavar="MODEL", help="begin with this folder, GGUF file or name at a hub")
    llm.add_argument("--mode", choices=["spoken", "readout"], help="how the model answers")
    llm.add_argument("--steps", type=terminal.whole(1), metavar="N", help="steps of each stage")
    llm.add_argument("--limit", type=terminal.whole(1), metavar="N", help="learn from so many questions")
    llm.add_argument("--loss", choices=["log", "brier", "rps"], help="of a model that is read out")
    llm.add_argument("--reward", choices=_REWARDS, help="of a model that speaks")
    llm.add_argument("--lora-rank", type=int, metavar="N", help="0 trains all weights")
    llm.add_argument("--seed", type=int, metavar="N", help="of the order of questions and of what is drawn")
    llm.add_argument("--merge", action="store_true", help="also write whole weights, with the adapter added to them")


_STAGES = ("questions", "sft", "grpo")
_REWARDS = ("correctness", "correctness+brier", "correctness+rps")
_ONLY_LLM = (
    "config",
    "questions",
    "stage",
    "model",
    "mode",
    "steps",
    "limit",
    "loss",
    "reward",
    "lora_rank",
    "seed",
    "merge",
)


def run(arguments: argparse.Namespace) -> int:
    if arguments.list:
        return _list(arguments)
    if arguments.forecaster != "llm":
        for name in _ONLY_LLM:
            if (given := getattr(arguments, name)) not in (None, []) and given is not False:
                raise PresageError(f"--{name.replace('_', '-')} is for 'presage train llm'")
    lines: list[str] = []
    say = lines.append if arguments.json else _say
    into = arguments.into or Path("models", arguments.forecaster)
    start = time.monotonic()
    if arguments.forecaster == "llm":
        _train_llm(arguments, into, say)
    else:
        train = {"learned": _train_learned, "operators": _train_operators, "modules": _train_modules}
        train[arguments.forecaster](arguments.recording, into, say)
    files = {str(file.relative_to(into)): file.stat().st_size for file in _files(into)}
    if arguments.json:
        seconds = time.monotonic() - start
        documents.write("train", {"into": str(into), "files": files, "seconds": seconds})
    else:
        total = sum(files.values())
        print(f"{into}: {len(files)} files, {total / 1e6:.1f} MB, in {time.monotonic() - start:.0f} s")
    return 0


def _say(line: str) -> None:
    """Print at once, also into a file: a training takes long, and may be killed."""
    print(line, flush=True)


def _files(into: Path) -> list[Path]:
    """Return the files that training wrote, without `questions/`, which has a file for each operation."""
    found = [file for file in sorted(into.rglob("*")) if file.is_file() and file.parent.name != "questions"]
    return [file for file in found if file != into / "lock"]


def _list(arguments: argparse.Namespace) -> int:
    from presage.train import config

    found = {name: config.read(name) for name in config.names()}
    if arguments.json:
        told = [
            {"name": name, "model": each.model, "mode": each.mode, "cost": each.cost} for name, each in found.items()
        ]
        documents.write("train.configurations", {"configurations": told})
    else:
        rows = [[name, each.model, each.mode, each.cost] for name, each in found.items()]
        print(terminal.table(rows, ["configuration", "begins with", "mode", "cost"]))
    return 0


def _train_llm(arguments: argparse.Namespace, into: Path, say: Callable[[str], None]) -> None:
    from presage.devices import recorded
    from presage.train import config, stages

    if not arguments.config:
        raise PresageError(f"name a configuration with --config; there are: {', '.join(config.names())}")
    seeds = {"sft__seed": arguments.seed, "grpo__seed": arguments.seed}
    chosen = config.read(
        arguments.config, model=arguments.model, mode=arguments.mode, sft__steps=arguments.steps,
        grpo__steps=arguments.steps, sft__limit=arguments.limit, sft__loss=arguments.loss,
        grpo__reward=arguments.reward, sft__lora_rank=arguments.lora_rank, **seeds,
    )  # fmt: skip
    if arguments.merge and not chosen.sft.lora_rank:
        raise PresageError("all weights are trained, so there is no adapter to merge; leave out --merge")
    names = arguments.recording or ([chosen.recording] if chosen.recording else recorded.packaged())
    if arguments.questions:
        for name in ("recording", "stage", "reward"):
            if getattr(arguments, name):
                raise PresageError(f"--{name} is for questions made from recordings, not for --questions")
        stages.run_own(chosen, arguments.questions, into, say)
    elif not names:
        raise PresageError("no recording is installed; name one with --recording FILE.parquet")
    else:
        stages.run(chosen, [recorded.find(name) for name in names], into, arguments.stage, say)
    if arguments.merge:
        stages.merge(into, say)


def _train_learned(names: Sequence[str], into: Path, say: Callable[[str], None]) -> None:
    from presage.devices import recorded
    from presage.forecasters import learned_training, module_training

    recordings = [recorded.find(name) for name in names or recorded.packaged()]
    of_kernels = [each for each in recordings if names or not module_training.has_modules(each)]
    if not of_kernels:
        raise PresageError("no recording of kernels is installed; name one with --recording FILE.parquet")
    learned_training.train(of_kernels, into, say)


def _train_operators(names: Sequence[str], into: Path, say: Callable[[str], None]) -> None:
    from presage.devices import operator_recording
    from presage.forecasters import operator_training
    from presage.plugins.group import OPERATOR_RECORDINGS

    names = names or OPERATOR_RECORDINGS.names()
    if not names:
        raise PresageError("no recording of operators is installed; name one with --recording FILE.parquet")
    timed = [each for name in names for each in operator_recording.read(operator_recording.find(name))]
    operator_training.train(timed, into, say)


def _train_modules(names: Sequence[str], into: Path, say: Callable[[str], None]) -> None:
    from presage.devices import recorded
    from presage.forecasters import module_training
    from presage.forecasters.learned import LearnedForecaster

    recordings = [recorded.find(name) for name in names or recorded.packaged()]
    with_modules = [each for each in recordings if names or module_training.has_modules(each)]
    if not with_modules:
        raise PresageError("no recording of modules is installed; name one with --recording FILE.parquet")
    module_training.train(with_modules, into, LearnedForecaster().model("compiled"), say)
