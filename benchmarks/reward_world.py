"""What each reward teaches a model about its confidence, in a world whose probabilities are known. Needs no GPU.

    python benchmarks/reward_world.py --into FOLDER [--steps 150] [--seeds 3] [--processes 2]

In this world somebody names the outcome of a kernel, and a question says in how many of a hundred cases they are right:
35, 65 or 95. Nothing else tells anything of the outcome. So the best answer is known, and so is what it scores.

A random model of two layers learns the form of spoken answers by supervised training, whose confidences are drawn at
random. From there each reward trains it further, with the stages of `presage train llm`. Then every model answers the
same questions, once each. A last model learns the best answers by supervised training, which shows what this model can
learn at all. Results are a line each in FOLDER/results.jsonl; the same command goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import train_pieces

os.environ["HF_HUB_OFFLINE"] = "1"

from presage.core import scale
from presage.forecasters.llm import parse
from presage.llm.answers import Answer
from presage.train.config import Config, Grpo, Sft
from presage.train.questions import Question
from presage.train.rewards import REWARDS, outcomes

RIGHT = (35, 65, 95)
"""In how many of a hundred cases the outcome is the one that is named."""
NAMES = (*scale.KEYS, "failure")
LEARNED, HELD = 600, 600
LONGEST = 40
BEFORE, TAUGHT = "supervised training alone", "supervised training on the best answers"


def probabilities(named: int, right: int) -> Any:
    """Of failure and of each bin: the named one, and the others alike."""
    found = np.full(len(NAMES), (1 - right / 100) / (len(NAMES) - 1))
    found[named] = right / 100
    return found


def questions(split: str, count: int) -> list[Question]:
    draw, found = random.Random(split), []
    for number in range(count):
        named, right = draw.randrange(len(NAMES)), draw.choice(RIGHT)
        truth = draw.choices(range(len(NAMES)), probabilities(named, right))[0]
        text = f"They name {NAMES[named - 1]}, and are right in {right} of 100 cases."
        log2_S = None if truth == 0 else float(truth)
        found.append(Question("world", "world", split, "c", str(named), f"{right}/{number}", truth, log2_S, text))
    return found


def make_model(folder: Path) -> None:
    """A model that knows nothing. Its tokens are long, so that what it reads and says is short."""
    import tokenizers
    import torch
    import transformers

    from presage.forecasters import llm_question
    from presage.train.questions import spoken_answer

    asked = questions("train", LEARNED)
    texts = [message["content"] for each in asked for message in llm_question.conversation(each.text, "spoken")]
    texts += [spoken_answer(truth, str(key)) for truth in range(len(NAMES)) for key in range(40)]
    raw = tokenizers.Tokenizer(tokenizers.models.BPE())
    raw.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    raw.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=1500, max_token_length=40, special_tokens=["<s>", "</s>"], show_progress=False,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
    )  # fmt: skip
    raw.train_from_iterator(texts, trainer)
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=raw, eos_token="</s>", pad_token="<s>")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=96, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=4096, eos_token_id=1, pad_token_id=0, bos_token_id=None,
    )  # fmt: skip
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def config(folder: Path, steps: int, reward: str = REWARDS[0], seed: int = 0) -> Config:
    sft = Sft(steps=400, batch=32, learning_rate=3e-3, lora_rank=0, checkpoint_seconds=1e9)
    grpo = Grpo(
        reward, steps=steps, questions=8, answers=8, tokens=LONGEST, learning_rate=5e-4, seed=seed,
        checkpoint_steps=steps, answers_at_once=64,
    )  # fmt: skip
    return Config(str(folder / "model"), mode="spoken", sft=sft, grpo=grpo)


def begin(folder: Path, steps: int) -> Path:
    """Supervised training. Returns the folder of its weights."""
    from presage.train import sft

    if not (folder / "model/tokenizer.json").exists():
        make_model(folder / "model")
    conversations = [each.conversation("spoken") for each in questions("train", LEARNED)]
    return sft.train(config(folder, steps), conversations, (), folder / "sft")


def teach(folder: Path, steps: int) -> Path:
    """The same, but on the best answers. It shows whether this model can learn what rewards might teach it."""
    from presage.train import sft

    asked = questions("train", LEARNED)
    conversations = [replace(each.conversation("spoken"), answer=best_answer(each)) for each in asked]
    return sft.train(config(folder, steps), conversations, (), folder / "taught")


def best_answer(question: Question) -> str:
    """Of the answers that supervised training draws from, the one that is nearest to the probabilities."""
    from presage.train.questions import spoken_answer

    named, right = int(question.anchor), int(question.kernel.split("/")[0])
    best = probabilities(named, right)
    answers = [spoken_answer(named, str(key)) for key in range(40)]
    return min(answers, key=lambda text: float(np.square(outcomes(parse(Answer(text)).forecast) - best).sum()))


def reward(folder: Path, steps: int, kind: str, seed: int) -> dict[str, Any]:
    import torch

    from presage.train import grpo

    torch.set_num_threads(1)
    start, own = time.monotonic(), folder / f"{kind}-{seed}"
    asked = questions("rewarded", 8 * steps)
    result = grpo.train(config(folder, steps, kind, seed), asked, folder / "sft/result", own, str)
    return {"reward": kind, "seed": seed, "seconds": round(time.monotonic() - start), **told(result)}


def told(model: Path) -> dict[str, Any]:
    """How good a model's answers are, and how sure it says it is where they are right in 35, 65 and 95 cases."""
    from presage.llm import weights
    from presage.train import scores

    asked = questions("held", HELD)
    said, _ = train_pieces.answered_in_words(weights.load(str(model)), [each.text for each in asked], LONGEST, 200)
    readable = ~np.isnan(said).any(axis=1)
    right = np.array([int(each.kernel.split("/")[0]) for each in asked])
    truth = [each.truth for each in asked]
    kept = [truth[i] for i in np.flatnonzero(readable)]
    best = np.array([probabilities(int(each.anchor), r) for each, r in zip(asked, right, strict=True)])
    sure = {str(r): float(np.nanmean(said[right == r].max(axis=1))) for r in RIGHT}
    named = np.array([int(each.anchor) for each in asked])
    return {
        "readable": float(readable.mean()),
        "agrees": float((said[readable].argmax(axis=1) == named[readable]).mean()),
        **scores.score_answers(said[readable], kept),
        "of the best answers": scores.score_answers(best, truth),
        "sure": sure,
    }


def table(results: Sequence[dict[str, Any]]) -> str:
    """Means over seeds, with the least and the largest."""

    def cell(values: Sequence[float]) -> str:
        ends = f" ({min(values):.2f} to {max(values):.2f})" if len(values) > 1 else ""
        return f"{np.mean(values):.3f}{ends}"

    keys = ("readable", "agrees", "exact", "ece", "half_brier", "nll")
    lines = [f"| reward | {' | '.join(keys)} | sure where right in {', '.join(map(str, RIGHT))} of 100 |"]
    lines.append("|---" * (len(keys) + 2) + "|")
    for kind in (BEFORE, *REWARDS, TAUGHT):
        own = [each for each in results if each["reward"] == kind]
        if own:
            sure = ", ".join(f"{np.mean([each['sure'][str(r)] for each in own]):.2f}" for r in RIGHT)
            lines.append(f"| {kind} | {' | '.join(cell([each[key] for each in own]) for key in keys)} | {sure} |")
    best = results[0]["of the best answers"]
    values = " | ".join("1" if key == "agrees" else f"{best[key]:.3f}" if key in best else "" for key in keys)
    return "\n".join([*lines, f"| the best answers | {values} | {', '.join(f'{r / 100:.2f}' for r in RIGHT)} |"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--steps", type=int, default=150, help="of reinforcement learning, with 64 answers each")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    folder, file = arguments.into, arguments.into / "results.jsonl"
    folder.mkdir(parents=True, exist_ok=True)
    results = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def keep(row: dict[str, Any]) -> None:
        results.append(row)
        with file.open("a") as out:
            out.write(json.dumps(row) + "\n")
        print(json.dumps(row), flush=True)

    begun = begin(folder, arguments.steps)
    done = {(each["reward"], each["seed"]) for each in results}
    if (BEFORE, 0) not in done:
        keep({"reward": BEFORE, "seed": 0, **told(begun)})
    if (TAUGHT, 0) not in done:
        keep({"reward": TAUGHT, "seed": 0, **told(teach(folder, arguments.steps))})
    wanted = [(kind, seed) for seed in range(arguments.seeds) for kind in REWARDS if (kind, seed) not in done]
    with ProcessPoolExecutor(arguments.processes) as pool:
        for future in [pool.submit(reward, folder, arguments.steps, *each) for each in wanted]:
            keep(future.result())
    print(table(results))


if __name__ == "__main__":
    main()
