"""What `presage train llm` gives: losses, rewards, data and sizes of models, each as a piece of an experiment on a GPU.

    python benchmarks/train_claims.py questions --into DATA [--advised]
    python benchmarks/train_claims.py convert --base MODEL.gguf
    python benchmarks/train_claims.py run A|B|C|D|E [PIECE…] --base MODEL --data DATA [--results FILE] [--minutes 9]
    python benchmarks/train_claims.py list [--results FILE]
    python benchmarks/train_claims.py score NAME… --data DATA --answers FOLDER [--advised] [--json FILE]

A trains a small model to be read out, with three losses and from more and more questions; B a larger one; C a model
that speaks, with three rewards (rewards_together.py does these at once); D the small one again, with questions that
say what `learned` forecasts; E one of modules and kernels. `questions` needs no GPU; it writes what is learned from,
and what `presage evaluate` would ask, with --advised those of D, with `--recording h200_modules --splits
validation,test_problem --beside DATA` those of E. `convert` unpacks a GGUF file once, into the work folder, where
`run` keeps checkpoints, too.

`run` adds a line to the results when a piece is done, and leaves out pieces that have one. A piece that was cut goes on
from its checkpoint. It stops before a piece that would not fit into the minutes. Where pieces leave the GPU idle, as
those with rewards do, `--together N` runs N at once, each in a process with its share of the memory; their lines and
logs are beside the results. Answers to the test splits, NAME_SPLIT.npz, and adapters go beside the results; `score`
tells how good those answers are beside `learned`, before and after a temperature, and blended. `--tiny` rehearses it
all, with a small random model on a CPU.
"""

from __future__ import annotations

import argparse
import dataclasses
import gzip
import itertools
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import train_pieces
from train_pieces import FULL, TINY, Place

from presage import (
    Candidate,
    Evaluation,
    Forecast,
    Forecaster,
    Prediction,
    PresageError,
    Recording,
    Task,
    evaluate,
    load_recording,
)

WORK = Path(tempfile.gettempdir(), "presage_train")
CONFIG = "small"
"""Says how questions are drawn."""
ASKED = ("validation", "test_op", "test_family")
SUITES = ("accuracy", "calibration", "ranking", "selective", "failures", "parts")
BASELINE = "learned"
UNSURE = 0.25
"""The share of kernels about which `learned` is called unsure: those with its widest 90 % intervals."""
BESIDE, BESIDE_TIMES = 4000, 2
"""Questions of another recording to learn from, too; and how many times those of the first one are there."""


# -- questions ---------------------------------------------------------------------------------------------------------


def questions(arguments: argparse.Namespace) -> None:
    """Those of training, from a folder with a file for each operation, and those of an evaluation. What is there of the
    folder and of an evaluation is not made again."""
    from presage.train import config
    from presage.train import questions as training

    recording = load_recording(arguments.recording)
    into = arguments.into / "advised" if arguments.advised else arguments.into
    training.make(config.read(CONFIG, questions__advised=arguments.advised), [recording], into / "questions")
    for split in arguments.splits:
        file = into / f"evaluate_{split}.jsonl.gz"
        if not file.exists():
            rows = evaluation_rows(recording, split, arguments.advised)
            print(f"{file.name}: {pack(file, rows, 6)} questions", flush=True)
    for split in training.SPLITS:
        file = into / f"questions_{split}.jsonl.gz"
        drawn = [dataclasses.asdict(each) for each in training.read(into / "questions", split)]
        if arguments.beside and split == "train":
            more = train_pieces.unpacked(arguments.beside / file.name)
            drawn = [*drawn * BESIDE_TIMES, *itertools.islice(more, BESIDE)]
            random.Random(0).shuffle(drawn)
        print(f"{file.name}: {pack(file, drawn, 9)} questions", flush=True)


def evaluation_rows(recording: Recording, split: str, is_advised: bool) -> Iterator[dict[str, Any]]:
    """What `presage evaluate` would ask about a split; the text is None where a source is not valid."""
    from presage.evaluations import outcomes
    from presage.forecasters import llm_question, registry
    from presage.llm.anonymise import Unreadable

    adviser = registry.get(BASELINE) if is_advised else None
    for pool in outcomes.pools(recording, split):
        known: llm_question.Known = {}
        for question in outcomes.questions(pool, 0):
            candidates, truths = question.candidates, question.truth.tolist()
            told = llm_question.advice(adviser, question.task, candidates)
            for candidate, truth, said in zip(candidates, truths, told, strict=True):
                log2_S = None if np.isnan(truth) else truth
                try:
                    text = llm_question.text(question.task, candidate, known, said)
                except Unreadable:
                    text = None
                yield {
                    "problem": pool.problem.name, "anchor": question.task.anchor.kernel.hash,
                    "kernel": candidate.kernel.hash, "language": candidate.kernel.language,
                    "seeded": bool(question.seeded), "log2_speedup": log2_S,
                    "truth": llm_question.digit_of(log2_S), "text": text,
                }  # fmt: skip


def pack(file: Path, rows: Iterable[Mapping[str, Any]], level: int) -> int:
    """Write rows as JSON lines; the file appears when it is whole. Returns how many there are."""
    count = 0
    part = file.with_suffix(".part")
    with gzip.open(part, "wt", level, encoding="utf-8") as out:
        for row in rows:
            out.write(json.dumps(row) + "\n")
            count += 1
    part.replace(file)
    return count


# -- the experiments ---------------------------------------------------------------------------------------------------


def convert(arguments: argparse.Namespace) -> None:
    """The GGUF file as a folder of safetensors in bf16, once: unpacking takes a minute, loading those a second."""
    import torch

    from presage.llm import weights

    start = time.monotonic()
    into = arguments.work / arguments.base.stem
    if not (into / "done").exists():
        loaded = weights.load(str(arguments.base), precision="fp32")
        loaded.model.to(torch.bfloat16).save_pretrained(into)
        loaded.tokenizer.save_pretrained(into)
        (into / "done").touch()
    print(f"{into}: {time.monotonic() - start:.0f} s")


def run(arguments: argparse.Namespace) -> None:
    start = time.monotonic()
    pieces = train_pieces.EXPERIMENTS[arguments.experiment]
    known = [piece.name for piece in pieces]
    if unknown := [name for name in arguments.pieces if name not in known]:
        raise PresageError(f"{arguments.experiment} has no piece '{unknown[0]}'; it has: {', '.join(known)}")
    results = arguments.results or arguments.work / "results.jsonl"
    data = arguments.data or arguments.work / "data"
    full = dataclasses.replace(
        FULL,
        compiled=not arguments.eager,
        pass_tokens=arguments.pass_tokens,
        answers_at_once=arguments.answers_at_once,
    )
    sizes = TINY if arguments.tiny else full
    place = Place(str(arguments.base), data, arguments.work, results.parent, sizes)
    for folder in (arguments.work, results.parent):
        folder.mkdir(parents=True, exist_ok=True)
    if arguments.memory < 1:
        import torch

        torch.cuda.set_per_process_memory_fraction(arguments.memory)
    wanted = [each for each in pieces if each.name in (arguments.pieces or known) and each.name not in done(results)]
    if arguments.together > 1 and len(wanted) > 1:
        run_together(arguments, results, wanted)
        return
    for piece in wanted:
        left = 60 * arguments.minutes - (time.monotonic() - start)
        if left < piece.estimate and not arguments.tiny:
            print(f"{piece.name} would take {piece.estimate} s, and {left:.0f} s are left: stopping")
            break
        begun = time.monotonic()
        told = train_pieces.run(place, piece)
        tell(results, {"piece": piece.name, "seconds": round(time.monotonic() - begun, 1), **told})


def run_together(arguments: argparse.Namespace, results: Path, pieces: Sequence[train_pieces.Piece]) -> None:
    """Run each piece in a process, the first alone if others begin with what it trains. A piece that fails is tried
    again with half as many answers at once, and goes on from its checkpoint."""
    start, share, lock = time.monotonic(), 0.94 / arguments.together, threading.Lock()

    def one(piece: train_pieces.Piece, memory: float = share) -> None:
        own, at_once = results.parent / f"{piece.folder}.jsonl", arguments.answers_at_once
        while piece.name not in done(own) and at_once:
            left = arguments.minutes - (time.monotonic() - start) / 60
            command = [
                *(sys.executable, __file__, "run", arguments.experiment, piece.name, "--base", str(arguments.base)),
                *("--work", str(arguments.work), "--results", str(own), "--minutes", str(left)),
                *("--answers-at-once", str(at_once), "--memory", str(memory)),
                *("--pass-tokens", str(arguments.pass_tokens)),
                *(("--data", str(arguments.data)) if arguments.data else ()),
                *("--eager",) * arguments.eager,
                *("--tiny",) * arguments.tiny,
            ]
            with own.with_suffix(".log").open("a") as log:
                status = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, check=False).returncode
            if status == 0:  # it is done, or it would not fit into the minutes
                break
            at_once //= 2
        lines = [json.loads(line) for line in own.read_text().splitlines()] if own.exists() else []
        with lock:
            for line in lines:
                tell(results, line)
            if not lines:
                print(f"{piece.name} is not done: see {own.with_suffix('.log')}", flush=True)

    others = list(pieces)
    if others[0].kind == "spoken":
        one(others.pop(0), 0.94)
    with ThreadPoolExecutor(arguments.together) as pool:
        list(pool.map(one, others))


def list_pieces(arguments: argparse.Namespace) -> None:
    known = done(arguments.results or arguments.work / "results.jsonl")
    for name, pieces in train_pieces.EXPERIMENTS.items():
        for piece in pieces:
            print(f"{piece.name:32} {piece.estimate:5} s {'done' if piece.name in known else ''}".rstrip())
        print(f"{name}: {sum(piece.estimate for piece in pieces) / 60:.0f} minutes")


def done(results: Path) -> set[str]:
    """The names of the pieces that have a line. One that was cut while it was written counts for nothing."""
    found = set()
    for line in results.read_text().splitlines() if results.exists() else ():
        try:
            found.add(json.loads(line)["piece"])
        except ValueError:
            continue
    return found


def tell(results: Path, row: Mapping[str, Any]) -> None:
    cut = results.exists() and not results.read_text().endswith("\n")
    with results.open("a") as out:
        out.write("\n" * cut + json.dumps(row) + "\n")
    print(json.dumps({key: value for key, value in row.items() if key != "log"}), flush=True)


# -- scores ------------------------------------------------------------------------------------------------------------


@dataclass
class Answered(Forecaster):
    """Says what a model said elsewhere to the same questions."""

    known: Mapping[tuple[str, str, str], Any]
    """By problem, anchor and kernel, the logarithms of its answers' probabilities."""
    temperature: float
    adviser: Forecaster | None

    def forecast(self, task: Task, candidates: Sequence[Candidate]) -> list[Prediction]:
        from presage.forecasters import llm_question

        told = llm_question.advice(self.adviser, task, candidates)
        return [Prediction(self._one(task, *each)) for each in zip(candidates, told, strict=True)]

    def _one(self, task: Task, candidate: Candidate, said: Forecast | None) -> Forecast | None:
        from presage.forecasters import llm_question
        from presage.forecasters.llm_readout import INVALID

        logs = self.known.get((task.problem.name, task.anchor.kernel.hash, candidate.kernel.hash))
        if logs is None:
            return None
        return INVALID if np.isnan(logs).any() else llm_question.from_logarithms(logs, self.temperature, said)


def answered(arguments: Any, name: str, split: str, is_warmed: bool) -> Answered:
    """arguments: with the folders `answers` and `data`, and whether questions were `advised`."""
    from presage.forecasters import registry

    kept = np.load(arguments.answers / f"{name}_{split}.npz")
    temperature = float(kept["temperature"]) if is_warmed else 1.0
    data = arguments.data / "advised" if arguments.advised else arguments.data
    rows = list(train_pieces.unpacked(data / f"evaluate_{split}.jsonl.gz"))
    if len(rows) != len(kept["logs"]):
        raise PresageError(f"{name}_{split}.npz has {len(kept['logs'])} answers to {len(rows)} questions")
    keys = [(row["problem"], row["anchor"], row["kernel"]) for row in rows]
    known = dict(zip(keys, kept["logs"], strict=True))
    return Answered(known, temperature, registry.get(BASELINE) if arguments.advised else None)


def evaluations(arguments: argparse.Namespace, recording: Recording, split: str) -> Iterator[Evaluation]:
    from presage.forecasters import registry
    from presage.forecasters.blend import BlendForecaster

    for name in arguments.names:
        if (arguments.answers / f"{name}_{split}.npz").exists():
            cold, warm = (answered(arguments, name, split, is_warmed) for is_warmed in (False, True))
        else:
            cold = warm = registry.get(name, recording)
        shares = [(1 - share, share) for share in arguments.shares]
        blend = BlendForecaster({BASELINE: registry.get(BASELINE), name: warm}, *shares)
        for label, each in ((name, cold), (f"{name} warmed", warm), (f"blend {name}", blend)):
            found = evaluate(each, recording=recording, split=split, suites=arguments.suites)
            yield dataclasses.replace(found, forecaster=label)
    yield evaluate(BASELINE, recording=recording, split=split, suites=arguments.suites)


def score(arguments: argparse.Namespace) -> None:
    from presage.cli.terminal import table
    from presage.evaluations.comparison import compare
    from presage.forecasters import registry
    from presage.report import evaluate_page

    arguments.data = arguments.data or arguments.work / "data"
    arguments.answers = arguments.answers or arguments.work
    asked = [name for name in arguments.names if name not in registry.names()]
    wanted = [arguments.answers / f"{name}_{split}.npz" for name in asked for split in arguments.splits]
    if missing := [file for file in wanted if not file.exists()]:
        raise PresageError(f"there are no answers {missing[0]}; name their folder with --answers")
    recording = load_recording(arguments.recording)
    for split in arguments.splits:
        found = list(evaluations(arguments, recording, split))
        rows, header = evaluate_page.numbers(found)
        print(split)
        print(table([row[:-1] for row in rows], header[:-1]))
        print(table(*evaluate_page.differences(compare(found, BASELINE))))
        for name in asked:
            print(table(*where_unsure(answered(arguments, name, split, False), recording, split)))
        if arguments.json:
            told = json.dumps([each.to_json() for each in found])
            arguments.json.with_name(f"{arguments.json.stem}_{split}.json").write_text(told)


def where_unsure(model: Forecaster, recording: Recording, split: str) -> tuple[list[list[str]], list[str]]:
    """Scores of kernels that work, of those about which `learned` is least sure and of the others."""
    from presage.core import scale, scoring
    from presage.evaluations import outcomes
    from presage.forecasters import registry
    from presage.forecasters.blend import BlendForecaster

    learned = registry.get(BASELINE)
    blend = BlendForecaster({BASELINE: learned, "model": model}, (0.5, 0.5), (0.5, 0.5))
    widths: list[float] = []
    bins: list[int] = []
    found: dict[str, list[Any]] = {"model": [], BASELINE: [], "blend": []}
    for pool in outcomes.pools(recording, split):
        for question in outcomes.questions(pool, 0):
            told = [each.forecast(question.task, question.candidates) for each in (model, learned, blend)]
            for truth, *predictions in zip(question.truth.tolist(), *told, strict=True):
                forecasts = [each.forecast for each in predictions if each.forecast is not None]
                if np.isnan(truth) or len(forecasts) < len(found):
                    continue
                widths.append(forecasts[1].quantile(0.95) - forecasts[1].quantile(0.05))
                bins.append(int(scale.bin_of(2.0**truth)))
                for rows, forecast in zip(found.values(), forecasts, strict=True):
                    rows.append(forecast.bin_probabilities())
    is_wide = np.array(widths) >= np.quantile(widths, 1 - UNSURE)
    rows = []
    for label, chosen in ((f"widest {UNSURE:.0%}", is_wide), ("others", ~is_wide)):
        right = np.array(bins)[chosen]
        for name, all_of in found.items():
            p = np.array(all_of)[chosen]
            values = (scoring.exact(p, right), scoring.nll(p, right), scoring.rps(p, right))
            rows.append([label, name, str(len(right)), *(f"{value:.3f}" for value in values)])
    return rows, ["where learned is", "forecaster", "answers", "exact", "nll", "rps"]


# -- the command line --------------------------------------------------------------------------------------------------


def names(text: str) -> list[str]:
    return text.split(",")


def numbers(text: str) -> list[float]:
    return [float(each) for each in text.split(",")]


def parser() -> argparse.ArgumentParser:
    work, recording, data, results, advised = (argparse.ArgumentParser(add_help=False) for _ in range(5))
    advised.add_argument("--advised", action="store_true", help="questions that say what `learned` forecasts")
    work.add_argument("--work", type=Path, default=WORK, metavar="FOLDER", help="(default: %(default)s)")
    recording.add_argument("--recording", default="h200", metavar="NAME|FILE")
    data.add_argument("--data", type=Path, metavar="FOLDER", help="where the questions are (default: WORK/data)")
    results.add_argument("--results", type=Path, metavar="FILE", help="(default: WORK/results.jsonl)")

    whole = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = whole.add_subparsers(required=True, metavar="COMMAND")
    each = commands.add_parser("questions", parents=[recording, advised])
    each.add_argument("--into", type=Path, required=True, metavar="FOLDER")
    each.add_argument("--splits", type=names, default=ASKED, help="of the evaluations (default: all three)")
    each.add_argument("--beside", type=Path, metavar="DATA", help=f"learn from {BESIDE:,} of these questions, too")
    each.set_defaults(command=questions)
    each = commands.add_parser("convert", parents=[work])
    each.add_argument("--base", type=Path, required=True, metavar="MODEL.gguf")
    each.set_defaults(command=convert)
    each = commands.add_parser("run", parents=[work, data, results])
    each.add_argument("experiment", choices=sorted(train_pieces.EXPERIMENTS))
    each.add_argument("pieces", nargs="*", metavar="PIECE", help="only these; `list` has their names (default: all)")
    each.add_argument("--base", type=Path, required=True, metavar="FOLDER", help="the model, as `convert` wrote it")
    each.add_argument("--minutes", type=float, default=9.0, help="begin nothing that takes longer (default: 9)")
    each.add_argument("--eager", action="store_true", help="do not compile the model's layers")
    each.add_argument(
        "--pass-tokens", type=int, default=FULL.pass_tokens, metavar="N", help="of a pass of training (%(default)s)"
    )
    each.add_argument(
        "--answers-at-once", type=int, default=FULL.answers_at_once, metavar="N",
        help="of a pass of reinforcement learning (%(default)s); fewer take less memory",
    )  # fmt: skip
    each.add_argument("--memory", type=float, default=1.0, metavar="SHARE", help="of the GPU, at most (default: 1)")
    each.add_argument("--together", type=int, default=1, metavar="N", help="run this many pieces at once (default: 1)")
    each.add_argument("--tiny", action="store_true", help="a few questions and steps: to rehearse it")
    each.set_defaults(command=run)
    each = commands.add_parser("list", parents=[work, results])
    each.set_defaults(command=list_pieces)
    each = commands.add_parser("score", parents=[work, data, recording, advised])
    each.add_argument(
        "names", nargs="+", metavar="NAME", help="a piece with answers, such as A_data16000; or a forecaster"
    )
    each.add_argument(
        "--shares", type=numbers, default=[0.5, 0.5], help="of the model in the blend: of speed, of failures (0.5,0.5)"
    )
    each.add_argument("--answers", type=Path, metavar="FOLDER", help="where they are (default: WORK)")
    each.add_argument("--splits", type=names, default=ASKED[1:], help="(default: the two test splits)")
    each.add_argument("--suites", type=names, default=SUITES, help=f"(default: {','.join(SUITES)})")
    each.add_argument("--json", type=Path, metavar="FILE", help="write the numbers of each split to FILE_SPLIT.json")
    each.set_defaults(command=score)
    return whole


def main() -> int:
    arguments = parser().parse_args()
    try:
        arguments.command(arguments)
    except PresageError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
