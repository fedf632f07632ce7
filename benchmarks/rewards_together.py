"""Three rewards, three seeds each, with a model that answers in words: nine trainings as one, on one GPU.

    python benchmarks/rewards_together.py --base MODEL --begin ADAPTER --data DATA --results FILE [--minutes M]

MODEL is a folder, ADAPTER what `train_claims.py run C C/sft` has trained, and DATA the folder of its questions. The
trainings take the same steps as those of `presage train llm --stage grpo`: the same rewards, advantages and loss. They
differ in how they are computed: all at once, see many_adapters.py. FILE gets a line for each step and for each look at
questions of the validation split, and is written anew. Training stops after `--steps` steps, or when the last look
would end after M minutes. `--tiny` rehearses it with a small random model on a CPU.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import train_pieces
from many_adapters import ManyAdapters, Speaker

from presage.forecasters import llm_question
from presage.llm import prompts, weights
from presage.train import config, rewards, scores, sft
from presage.train.questions import Question

REWARDS, SEEDS = train_pieces.REWARDS, train_pieces.SEEDS
RUNS = tuple(itertools.product(SEEDS, REWARDS))
LONGEST_PROMPT = 1856
"""Questions with more tokens are left out."""
LAST = 2000
"""The last so many questions of the data earn rewards. Supervised training sees the first 4,000."""
MOST_NORM = 1.0


class Trainings:
    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._start = time.monotonic()
        loaded = weights.load(str(arguments.base), arguments.begin, trainable=True)
        self._tokenizer = loaded.tokenizer
        self._end = loaded.tokenizer.eos_token_id
        self.adapters = ManyAdapters(loaded.model, len(RUNS))
        self._optimiser = torch.optim.AdamW(self.adapters.parameters, lr=arguments.rate, weight_decay=0.0)
        place = train_pieces.Place("", arguments.data, Path(), Path(), train_pieces.FULL)
        piece = train_pieces.Piece("", "rewarded", 0)
        self._learned = self._short(place.questions(piece, "train")[-LAST:])
        self._held = self._short(place.questions(piece, "validation"))[: arguments.held]
        many = arguments.questions, arguments.answers
        self._speaker = Speaker(self.adapters, *many, LONGEST_PROMPT, arguments.tokens)
        self._examined: Speaker | None = None

    def _short(self, questions: Sequence[Question]) -> list[tuple[Question, list[int]]]:
        asked = [llm_question.conversation(each.text, "spoken") for each in questions]
        ids = prompts.all_prompt_ids(self._tokenizer, asked)
        return [(one, two) for one, two in zip(questions, ids, strict=True) if len(two) <= LONGEST_PROMPT]

    def tell(self, **row: Any) -> None:
        row["seconds"] = round(time.monotonic() - self._start, 1)
        with self._arguments.results.open("a") as out:
            out.write(json.dumps(row) + "\n")
        print({key: value for key, value in row.items() if key not in ("runs", "truth", "said")}, flush=True)

    # -- training -----------------------------------------------------------------------------------------------------

    def step(self, number: int) -> None:
        arguments, begun = self._arguments, time.monotonic()
        by_seed = {seed: sft.order(len(self._learned), number, arguments.questions, seed) for seed in SEEDS}
        asked = [sorted((self._learned[at] for at in by_seed[seed]), key=lambda each: len(each[1])) for seed, _ in RUNS]
        said = self._speaker.speak([[ids for _, ids in row] for row in asked], self._end)
        spoken = time.monotonic()
        earned, told = self._earned(asked, said)
        advantages = earned - earned.mean(-1, keepdims=True)
        counts = np.abs(advantages) > 1e-9
        share = np.maximum(counts.mean((1, 2), keepdims=True), 1 / counts[0].size)
        advantages = advantages / share  # groups whose answers earned the same are left out of the mean
        self._optimiser.zero_grad(set_to_none=True)
        for at in range(arguments.questions):
            if not counts[:, at].any():
                continue
            logs, mask = self.adapters.log_probabilities([row[at][1] for row in asked], [row[at] for row in said])
            weight = torch.tensor(advantages[:, at], device=logs.device, dtype=logs.dtype)[..., None]
            loss = -(weight * logs * mask).sum() / (arguments.questions * arguments.answers * arguments.tokens)
            loss.backward()  # type: ignore[no-untyped-call]
        norms = self.adapters.clip(MOST_NORM) if counts.any() else np.zeros(len(RUNS))
        self._optimiser.step()
        runs = [
            {"reward": float(r.mean()), "same": 1 - float(c.any(-1).mean()), "norm": float(n), **t}
            for r, c, n, t in zip(earned, counts, norms, told, strict=True)
        ]
        mean = np.mean([each["reward"] for each in runs])
        self.tell(step=number + 1, reward=round(float(mean), 3), spoke=round(spoken - begun, 2), runs=runs)

    def _earned(self, asked: Any, said: Any) -> tuple[Any, list[dict[str, float]]]:
        """The rewards, by training, question and answer, and what else is told of the answers of each training."""
        earned, told = [], []
        for (_, kind), questions, answers in zip(RUNS, asked, said, strict=True):
            found, hits, sure, lengths = [], [], [], []
            for (question, _), group in zip(questions, answers, strict=True):
                row = []
                for ids in group:
                    used = len(ids) / self._arguments.tokens
                    finish = "stop" if used < 1 else "length"
                    text = self._tokenizer.decode(ids, skip_special_tokens=True)
                    row.append(rewards.reward(kind, text, question.truth, used=used, finish=finish))
                    probabilities = train_pieces.understood(text)
                    hits.append(float(probabilities.argmax() == question.truth and not np.isnan(probabilities).any()))
                    sure.append(float(probabilities.max()))
                    lengths.append(len(ids))
                found.append(row)
            earned.append(found)
            told.append(
                {
                    "right": float(np.mean(hits)), "sure": float(np.nanmean(sure)) if np.isfinite(sure).any() else 0.0,
                    "unread": float(np.isnan(sure).mean()), "tokens": float(np.mean(lengths)),
                }
            )  # fmt: skip
        return np.array(earned), told

    # -- looks --------------------------------------------------------------------------------------------------------

    def look(self, step: int) -> None:
        """Ask every training all questions that are held out, once each."""
        at_once, begun = self._arguments.at_once, time.monotonic()
        if self._examined is None:
            self._examined = Speaker(self.adapters, at_once, 1, LONGEST_PROMPT, self._arguments.tokens)
        said: list[list[Any]] = [[] for _ in RUNS]
        for first in range(0, len(self._held), at_once):
            some = [ids for _, ids in self._held[first : first + at_once]]
            some += [some[0]] * (at_once - len(some))
            for row, answers in zip(said, self._examined.speak([some] * len(RUNS), self._end), strict=True):
                row += [
                    train_pieces.understood(self._tokenizer.decode(one, skip_special_tokens=True)) for (one,) in answers
                ]
        questions = [question for question, _ in self._held]
        runs = []
        for (seed, kind), row in zip(RUNS, said, strict=True):
            runs.append({"seed": seed, "kind": kind, **scores.score(np.array(row[: len(questions)]), questions)})
        self.tell(
            look=step, took=round(time.monotonic() - begun, 1), runs=runs, truth=[each.truth for each in questions],
            said=[np.round(np.array(row[: len(questions)]), 3).tolist() for row in said],
        )  # fmt: skip

    def run(self) -> None:
        arguments = self._arguments
        looked = time.monotonic()
        self.look(0)
        looked = time.monotonic() - looked
        done = 0
        for number in range(arguments.steps):
            if time.monotonic() - self._start + looked > 60 * arguments.minutes:
                break
            self.step(number)
            done = number + 1
            if arguments.every and done % arguments.every == 0 and done < arguments.steps:
                self.look(done)
        self.look(done)


def tiny(arguments: argparse.Namespace) -> None:
    """Put a small random model, an adapter and questions in place of those of the arguments."""
    import transformers

    chosen = config.Config(str(arguments.base))
    tokenizer = transformers.AutoTokenizer.from_pretrained(arguments.base)
    settings = transformers.Qwen2Config(
        vocab_size=len(tokenizer), hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=4096, tie_word_embeddings=True,
    )  # fmt: skip
    into = arguments.results.parent / "tiny"
    model = transformers.Qwen2ForCausalLM(settings)
    model.save_pretrained(into / "base")
    tokenizer.save_pretrained(into / "base")
    sft.with_lora(model, 4, chosen.sft.seed).save_pretrained(into / "adapter")
    arguments.base, arguments.begin = into / "base", into / "adapter"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", type=Path, required=True, metavar="MODEL")
    parser.add_argument("--begin", type=Path, metavar="ADAPTER")
    parser.add_argument("--data", type=Path, required=True, metavar="DATA")
    parser.add_argument("--results", type=Path, required=True, metavar="FILE")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--questions", type=int, default=8, help="of a step (default: 8)")
    parser.add_argument("--answers", type=int, default=8, help="to each (default: 8)")
    parser.add_argument("--tokens", type=int, default=144, help="of the longest answer (default: 144)")
    parser.add_argument("--rate", type=float, default=1e-4, help="of learning (default: 1e-4)")
    parser.add_argument("--held", type=int, default=800, help="questions of a look (default: 800)")
    parser.add_argument("--at-once", type=int, default=80, help="of these, for each training (default: 80)")
    parser.add_argument("--every", type=int, default=0, help="steps between looks (default: only the first and last)")
    parser.add_argument("--tiny", action="store_true")
    arguments = parser.parse_args()
    if not (arguments.begin or arguments.tiny):
        parser.error("name the adapter to begin with: --begin ADAPTER")
    arguments.results.parent.mkdir(parents=True, exist_ok=True)
    arguments.results.unlink(missing_ok=True)
    torch.manual_seed(0)
    if arguments.tiny:
        tiny(arguments)
    Trainings(arguments).run()


if __name__ == "__main__":
    main()
