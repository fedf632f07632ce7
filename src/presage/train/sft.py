"""The second stage: supervised training, in plain PyTorch, of a model that is read out or that speaks.

A model that is read out learns to give the nine answers probabilities of least loss. A model that speaks learns the
form of an answer, word by word; how sure to be is left to the third stage. Under `accelerate launch` every process
takes its share of each step's questions.
"""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from presage.core import scale
from presage.core.errors import PresageError, install
from presage.core.files import write_whole
from presage.forecasters import llm_question
from presage.llm.readout import by_length, last_logits
from presage.llm.weights import Description, Weights, all_prompt_ids, answer_ids, import_libraries, import_peft, load
from presage.train import checkpoint, readout
from presage.train.config import Config
from presage.train.questions import Question, claim

RESULT = "result"
LOG = "log.jsonl"
_TRUTH, _BESIDE, _ANY = 0.6, 0.15, 0.02
"""The probabilities of the answers that a spoken model copies: of what came true, of the bins beside, of others."""
_CLIP = 1.0


@dataclass(frozen=True)
class Example:
    """A question as tokens, and what is to be learned of it."""

    prompt: list[int]
    truth: int
    answer: list[int]
    """The tokens to say; none for a model that is read out."""

    def __len__(self) -> int:
        return len(self.prompt) + len(self.answer)


def train(config: Config, questions: Sequence[Question], folder: Path, say: Callable[[str], None] = print) -> Path:
    """Train, or go on where a checkpoint stands, and write the adapter or the weights; returns their folder."""
    result = folder / RESULT
    folder.mkdir(parents=True, exist_ok=True)
    claim(folder / "settings.json", config.digest("model", "mode", "precision", "sft"), "training")
    if (result / "done").exists():
        say(f"sft: done already, in {result}")
        return result
    torch, _ = import_libraries()
    accelerator = _accelerator(torch, config)
    torch.manual_seed(config.sft.seed)
    weights = load(config.model, precision=precision_of(config), trainable=True)
    model = with_lora(weights.model, config.sft.lora_rank, config.sft.seed)
    if config.recompute:
        model.enable_input_require_grads()
        model.gradient_checkpointing_enable({"use_reentrant": False})
    examples = list(as_examples(weights, questions, config.mode))
    training = Training(config, accelerator, model, weights, folder, say)
    training.run(examples)
    if accelerator.is_main_process:
        write_result(accelerator.unwrap_model(training.model), weights, result)
    accelerator.wait_for_everyone()
    return result


class Training:
    """One model on its way through the questions."""

    def __init__(
        self, config: Config, accelerator: Any, model: Any, weights: Weights, folder: Path, say: Callable[[str], None]
    ) -> None:
        torch, _ = import_libraries()
        self._settings, self._mode, self._folder = config.sft, config.mode, folder
        self._accelerator, self._say = accelerator, say if accelerator.is_main_process else lambda line: None
        self._parameters = {name: each for name, each in model.named_parameters() if each.requires_grad}
        self._optimiser = torch.optim.AdamW(
            self._parameters.values(), lr=config.sft.learning_rate, weight_decay=config.sft.weight_decay
        )
        self.model = accelerator.prepare_model(model)
        self._digits = answer_ids(weights.tokenizer, llm_question.ANSWERS) if self._mode == "readout" else []

    def run(self, examples: Sequence[Example]) -> None:
        steps = self._settings.steps or math.ceil(self._settings.epochs * len(examples) / self._settings.batch)
        facts = checkpoint.load(self._folder, self._parameters, self._optimiser) or {"step": 0, "seconds": 0.0}
        first, before = facts["step"], facts["seconds"]
        if first:
            self._say(f"sft: going on at step {first} of {steps}")
        log = self._log(first)
        start = saved = time.monotonic()
        self.model.train()
        for step in range(first, steps):
            told = self._step(step, steps, [examples[i] for i in order(len(examples), step, self._settings)])
            seconds = before + time.monotonic() - start
            if self._accelerator.is_main_process:
                log.append(json.dumps({"step": step + 1, **told, "seconds": round(seconds, 2)}))
                if time.monotonic() - saved >= self._settings.checkpoint_seconds or step + 1 == steps:
                    self._save(step + 1, seconds, log)
                    saved = time.monotonic()
            if (step + 1) % max(1, steps // 20) == 0:
                self._say(f"sft: step {step + 1} of {steps}, loss {told['loss']:.4f}, {seconds:.0f} s")

    def _save(self, step: int, seconds: float, log: list[str]) -> None:
        """The log first: what it has too much is cut off, what it lacks would be missing for ever."""
        write_whole(self._folder / LOG, "".join(f"{line}\n" for line in log))
        checkpoint.save(self._folder, self._parameters, self._optimiser, {"step": step, "seconds": seconds})

    def _log(self, step: int) -> list[str]:
        """The lines up to the checkpoint: what came after will come again."""
        file = self._folder / LOG
        return file.read_text().splitlines()[:step] if step and file.exists() else []

    def _step(self, step: int, steps: int, batch: Sequence[Example]) -> dict[str, float]:
        torch, _ = import_libraries()
        rate = self._settings.learning_rate * schedule(step, steps, self._settings.warmup)
        for group in self._optimiser.param_groups:
            group["lr"] = rate
        mine = sorted(batch, key=len)[self._accelerator.process_index :: self._accelerator.num_processes]
        passes = list(by_length([len(example) for example in mine], self._settings.pass_tokens))
        total = torch.zeros((), device=self._accelerator.device)
        for number, rows in enumerate(passes):
            is_last = number == len(passes) - 1
            with nullcontext() if is_last else self._accelerator.no_sync(self.model), self._accelerator.autocast():
                loss = self._loss([mine[i] for i in rows]) * self._accelerator.num_processes / len(batch)
                self._accelerator.backward(loss)
            total += loss.detach()
        norm = self._accelerator.clip_grad_norm_(self._parameters.values(), _CLIP)
        self._optimiser.step()
        self._optimiser.zero_grad(set_to_none=True)
        loss = float(self._accelerator.reduce(total, "mean"))
        if not math.isfinite(loss):
            raise PresageError(f"the loss is {loss} at step {step + 1}; a lower learning rate or fp32 may help")
        return {"loss": loss, "norm": float(norm), "rate": rate, "tokens": sum(map(len, batch))}

    def _loss(self, examples: Sequence[Example]) -> Any:
        """The sum over examples."""
        torch, _ = import_libraries()
        if self._mode == "readout":
            logits = last_logits(self.model, [example.prompt for example in examples])[:, 0]
            said = torch.log_softmax(logits.float(), -1)[:, self._digits]
            truth = torch.tensor([example.truth for example in examples], device=said.device)
            return readout.loss(self._settings.loss, said, truth).sum()
        longest = max(len(example.answer) for example in examples)
        logits = last_logits(self.model, [e.prompt + e.answer for e in examples], longest + 1)[:, :-1]
        wanted = torch.full((len(examples), longest), -100)
        for row, example in enumerate(examples):
            wanted[row, longest - len(example.answer) :] = torch.tensor(example.answer)
        flat = torch.nn.functional.cross_entropy(
            logits.float().flatten(0, 1), wanted.flatten().to(logits.device), ignore_index=-100, reduction="none"
        )
        lengths = torch.tensor([len(example.answer) for example in examples], device=flat.device)
        return (flat.view(len(examples), longest).sum(1) / lengths).sum()


def order(count: int, step: int, settings: Any) -> list[int]:
    """The examples of a step: epochs are shuffled anew, each by its own number, so that any step can be told alone."""
    places = range(step * settings.batch, (step + 1) * settings.batch)
    return [_epoch(count, place // count, settings.seed)[place % count] for place in places]


def _epoch(count: int, epoch: int, seed: int, known: dict[tuple[int, int, int], list[int]] = {}) -> list[int]:  # noqa: B006
    key = (count, epoch, seed)
    if key not in known:
        for old in list(known)[:-1]:
            del known[old]
        known[key] = random.Random(f"{seed}/{epoch}").sample(range(count), count)
    return known[key]


def schedule(step: int, steps: int, warmup: float) -> float:
    """The share of the learning rate at a step: up a line, then down a cosine.

    >>> [round(schedule(step, 10, 0.2), 2) for step in (0, 1, 2, 6, 9)]
    [0.5, 1.0, 1.0, 0.5, 0.04]
    """
    rising = max(1, round(steps * warmup))
    if step < rising:
        return (step + 1) / rising
    return 0.5 * (1 + math.cos(math.pi * (step - rising) / max(1, steps - rising)))


def as_examples(weights: Weights, questions: Sequence[Question], mode: str) -> Iterator[Example]:
    tokenizer = weights.tokenizer
    prompts = all_prompt_ids(tokenizer, [llm_question.conversation(question.text, mode) for question in questions])
    for question, prompt in zip(questions, prompts, strict=True):
        answer: list[int] = []
        if mode == "spoken":
            answer = tokenizer.encode(spoken_answer(question.truth), add_special_tokens=False)
            answer += [tokenizer.eos_token_id] if tokenizer.eos_token_id is not None else []
        yield Example(prompt, question.truth, answer)


def spoken_answer(truth: int) -> str:
    """What a spoken model copies: a hump about what came true. It teaches the form of an answer, not how sure to be.

    >>> spoken_answer(4)
    '{"reason":"","p1":0.02,"p2":0.02,"p3":0.15,"p4":0.6,"p5":0.15,"p6":0.02,"p7":0.02,"p8":0.02,"p_fail":0.02}'
    """
    bins = np.full(scale.BINS, _ANY)
    if truth == 0:
        bins[:] = 1 / scale.BINS
    else:
        bins[max(0, truth - 2) : truth + 1] = _BESIDE
        bins[truth - 1] = _TRUTH
    cumulated = np.round(np.cumsum(bins / bins.sum()), 2)
    told = np.diff(np.concatenate(([0.0], cumulated)))
    values = {key: round(float(p), 2) for key, p in zip(scale.KEYS, told, strict=True)}
    answer = {"reason": "", **values, "p_fail": round(1 - 2 * _BESIDE, 2) if truth == 0 else _ANY}
    return json.dumps(answer, separators=(",", ":"))


def with_lora(model: Any, rank: int, seed: int) -> Any:
    """The model with an adapter in every linear layer, alone to be trained; or all of it for rank 0."""
    if rank == 0:
        model.requires_grad_(True)
        return model
    if hasattr(model, "peft_config"):
        return model
    torch, _ = import_libraries()
    peft = import_peft()
    torch.manual_seed(seed)
    chosen = peft.LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear", task_type="CAUSAL_LM")
    return peft.get_peft_model(model, chosen)


def write_result(model: Any, weights: Weights, folder: Path) -> None:
    """Write what was trained as safetensors in half precision, with the tokenizer; a file `done` comes last."""
    torch, _ = import_libraries()
    folder.mkdir(parents=True, exist_ok=True)
    small = {name: each.to(torch.bfloat16) for name, each in model.state_dict().items()}
    if hasattr(model, "peft_config"):
        import_peft()
        from peft.utils import get_peft_model_state_dict

        small = get_peft_model_state_dict(model, small)
        from safetensors.torch import save_file

        save_file({name: each.contiguous().cpu() for name, each in small.items()}, folder / "adapter_model.safetensors")
        config = next(iter(model.peft_config.values()))
        config.inference_mode = True
        config.save_pretrained(str(folder))
    else:
        model.save_pretrained(str(folder), state_dict=small, safe_serialization=True)
    weights.tokenizer.save_pretrained(str(folder))
    (folder / "done").touch()


def description(config: Config, stage: str, temperature: float = 1.0) -> Description:
    """What the folder of a training that has come to this stage says of itself."""
    key = "adapter" if config.sft.lora_rank else "weights"
    return Description(config.model, **{key: f"{stage}/{RESULT}"}, mode=config.mode, temperature=temperature)


def precision_of(config: Config) -> str:
    """All weights are trained in single precision, and computed with in half where the machine can."""
    return config.precision if config.sft.lora_rank else "fp32"


def _accelerator(torch: Any, config: Config) -> Any:
    try:
        import accelerate
    except ImportError as error:
        raise PresageError(f"training needs the accelerate package; {install('train')}") from error
    has_gpu = torch.cuda.is_available()
    half = config.precision != "fp32" and has_gpu
    return accelerate.Accelerator(mixed_precision="bf16" if half else "no", cpu=not has_gpu)
