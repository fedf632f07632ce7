"""The second stage: supervised training, in plain PyTorch, of a model that is read out or that answers in words.

A model that is read out learns probabilities of the possible answers that minimise the loss. A model that answers in
words learns the answer token by token; the third stage teaches it the right confidence. Where all answers begin alike
and are few, the token in which they first differ counts as much as the mean of all: once it is said, the others follow
from it, and as one of eighty it would be learned late. Under `accelerate
launch`, every process takes its share of each step's questions.
"""

from __future__ import annotations

import json
import math
import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from presage.core.errors import PresageError, install
from presage.core.files import write_whole
from presage.llm.prompts import Prompt, answer_ids, beside, prompts
from presage.llm.readout import by_length, last_logits
from presage.llm.weights import Description, Weights, import_libraries, import_peft, load
from presage.train import checkpoint, readout
from presage.train.config import Config
from presage.train.conversations import Conversation
from presage.train.questions import claim

RESULT = "result"
LOG = "log.jsonl"
_CLIP = 1.0
_FEW = 150
"""The most different answers in words of which one token decides."""


@dataclass(frozen=True)
class Example:
    """A question as tokens, and its right answer."""

    prompt: Prompt
    truth: int
    """The number of the right answer, for a model that is read out."""
    answer: tuple[int, ...]
    """The tokens of the answer; empty for a model that is read out."""
    deciding: int | None = None
    """The place in `answer` of the token that decides which of a few answers it is."""

    @property
    def ids(self) -> tuple[int, ...]:
        return self.prompt.ids + self.answer

    def __len__(self) -> int:
        return len(self.prompt) + len(self.answer)


def train(
    config: Config,
    conversations: Sequence[Conversation],
    answers: Sequence[str],
    folder: Path,
    say: Callable[[str], None] = print,
    source: str = "",
) -> Path:
    """Train, or resume from a checkpoint, and write the adapter or the weights; returns their folder. answers: all
    possible answers of a model that is read out. source: a digest of questions that do not follow from the settings."""
    result = folder / RESULT
    folder.mkdir(parents=True, exist_ok=True)
    parts = ["model", "mode", "precision", "context", "sft"]
    claim(folder / "settings.json", config, parts, "the training in {} was", source)
    if (result / "done").exists():
        say(f"sft: done already, in {result}")
        return result
    if not config.grpo.vllm:  # vLLM does not support this setting
        os.environ.setdefault("PYTORCH_ALLOC_CONF", "expandable_segments:True")  # batches differ in their lengths
    torch, _ = import_libraries()
    accelerator = _accelerator(torch, config)
    torch.manual_seed(config.sft.seed)
    sees = any(each.has_pictures for each in conversations)
    weights = load(config.model, precision=precision_of(config), trainable=True, sees=sees)
    model = with_lora(weights.model, config.sft.lora_rank, config.sft.seed)
    if accelerator.mixed_precision == "bf16":
        _leave_inputs(model)
    if config.recompute:
        model.enable_input_require_grads()
        model.gradient_checkpointing_enable({"use_reentrant": False})
    if config.sft.compiled and torch.cuda.is_available():
        compile_layers(model)
    asked = list(as_examples(weights, conversations, answers, config.mode))
    examples = fitting(asked, context_of(config, weights), say)
    training = Training(config, accelerator, model, weights, answers, folder, say)
    training.run(examples)
    if accelerator.is_main_process:
        write_result(accelerator.unwrap_model(training.model), weights, result)
    accelerator.wait_for_everyone()
    return result


class Training:
    """The training loop of one model."""

    def __init__(
        self,
        config: Config,
        accelerator: Any,
        model: Any,
        weights: Weights,
        answers: Sequence[str],
        folder: Path,
        say: Callable[[str], None],
    ) -> None:
        torch, _ = import_libraries()
        if config.sft.batch < accelerator.num_processes:
            raise PresageError(
                f"sft.batch is {config.sft.batch}; each of the {accelerator.num_processes} processes needs a question"
            )
        self._settings, self._mode, self._folder = config.sft, config.mode, folder
        self._accelerator, self._say = accelerator, say
        self._parameters = {name: each for name, each in model.named_parameters() if each.requires_grad}
        self._optimiser = torch.optim.AdamW(
            self._parameters.values(), lr=config.sft.learning_rate, weight_decay=config.sft.weight_decay
        )
        self.model = accelerator.prepare_model(model)
        self._weights = weights
        self._answers = answer_ids(weights.tokenizer, answers) if self._mode == "readout" else []

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
            drawn = order(len(examples), step, self._settings.batch, self._settings.seed)
            told = self._step(step, steps, [examples[i] for i in drawn])
            seconds = before + time.monotonic() - start
            if self._accelerator.is_main_process:
                log.append(json.dumps({"step": step + 1, **told, "seconds": round(seconds, 2)}))
                if time.monotonic() - saved >= self._settings.checkpoint_seconds or step + 1 == steps:
                    self._save(step + 1, seconds, log)
                    saved = time.monotonic()
            if (step + 1) % max(1, steps // 20) == 0:
                self._say(f"sft: step {step + 1} of {steps}, loss {told['loss']:.4f}, {seconds:.0f} s")

    def _save(self, step: int, seconds: float, log: list[str]) -> None:
        """Write the log before the checkpoint: lines beyond the checkpoint are cut off when training resumes, but
        missing lines could not be restored."""
        write_whole(self._folder / LOG, "".join(f"{line}\n" for line in log))
        checkpoint.save(self._folder, self._parameters, self._optimiser, {"step": step, "seconds": seconds})

    def _log(self, step: int) -> list[str]:
        """The log lines up to the checkpoint. Later steps will run again."""
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
        norm = float(self._accelerator.clip_grad_norm_(self._parameters.values(), _CLIP))
        loss = float(self._accelerator.reduce(total, "mean"))
        for what, value in (("loss", loss), ("norm of the gradients", norm)):
            if not math.isfinite(value):  # before the step, so that no checkpoint holds what follows from it
                raise PresageError(f"the {what} is {value} at step {step + 1}; a lower learning rate or fp32 may help")
        self._optimiser.step()
        self._optimiser.zero_grad(set_to_none=True)
        return {"loss": loss, "norm": norm, "rate": rate, "tokens": sum(map(len, batch))}

    def _loss(self, examples: Sequence[Example]) -> Any:
        """The sum of the losses of the examples."""
        torch, _ = import_libraries()
        rows, besides = [each.ids for each in examples], [beside(self._weights, each.prompt) for each in examples]
        if self._mode == "readout":
            logits = last_logits(self.model, rows, besides=besides)[:, 0]
            said = torch.log_softmax(logits.float(), -1)[:, self._answers]
            truth = torch.tensor([example.truth for example in examples], device=said.device)
            return readout.loss(self._settings.loss, said, truth).sum()
        longest = max(len(example.answer) for example in examples)
        logits = last_logits(self.model, rows, longest + 1, besides)[:, :-1]
        wanted = torch.full((len(examples), longest), -100)
        for row, example in enumerate(examples):
            wanted[row, longest - len(example.answer) :] = torch.tensor(example.answer)
        flat = torch.nn.functional.cross_entropy(
            logits.float().flatten(0, 1), wanted.flatten().to(logits.device), ignore_index=-100, reduction="none"
        )
        lengths = torch.tensor([len(example.answer) for example in examples], device=flat.device)
        each = flat.view(len(examples), longest)
        decided = [
            each[row, longest - len(example.answer) + example.deciding]
            for row, example in enumerate(examples)
            if example.deciding is not None
        ]
        return (each.sum(1) / lengths).sum() + sum(decided)


def seconds(folder: Path) -> float:
    """The seconds of training before the last checkpoint; 0 if there is none."""
    file = folder / LOG
    lines = file.read_text().splitlines() if file.exists() else []
    try:
        return float(json.loads(lines[-1])["seconds"]) if lines else 0.0
    except (KeyError, TypeError, ValueError) as error:
        raise PresageError(f"{file} is damaged: {error}; remove it, and the log begins anew") from error


def order(count: int, step: int, batch: int, seed: int) -> list[int]:
    """The indices of the examples of a step. Each epoch is shuffled with a seed from its number, so that the indices of
    any step can be computed alone."""
    places = range(step * batch, (step + 1) * batch)
    return [_epoch(count, place // count, seed)[place % count] for place in places]


def _epoch(count: int, epoch: int, seed: int, known: dict[tuple[int, int, int], list[int]] = {}) -> list[int]:  # noqa: B006
    key = (count, epoch, seed)
    if key not in known:
        for old in list(known)[:-1]:
            del known[old]
        known[key] = random.Random(f"{seed}/{epoch}").sample(range(count), count)
    return known[key]


def schedule(step: int, steps: int, warmup: float) -> float:
    """The factor on the learning rate at a step: linear warm-up, then cosine decay.

    >>> [round(schedule(step, 10, 0.2), 2) for step in (0, 1, 2, 6, 9)]
    [0.5, 1.0, 1.0, 0.5, 0.04]
    """
    rising = max(1, round(steps * warmup))
    if step < rising:
        return (step + 1) / rising
    return 0.5 * (1 + math.cos(math.pi * (step - rising) / max(1, steps - rising)))


def as_examples(
    weights: Weights, conversations: Sequence[Conversation], answers: Sequence[str], mode: str
) -> Iterator[Example]:
    tokenizer = weights.tokenizer
    asked = prompts(weights, [each.messages for each in conversations])
    said: dict[str, tuple[int, ...]] = {}
    if mode != "readout":
        check_ends(tokenizer)
        for text in dict.fromkeys(each.answer for each in conversations):
            said[text] = (*tokenizer.encode(text, add_special_tokens=False), tokenizer.eos_token_id)
    deciding = first_difference(list(said.values())) if len(said) <= _FEW else None
    for conversation, prompt in zip(conversations, asked, strict=True):
        if mode == "readout":
            yield Example(prompt, answers.index(conversation.answer), ())
        else:
            yield Example(prompt, 0, said[conversation.answer], deciding)


def check_ends(tokenizer: Any) -> None:
    """Raise PresageError if a model that speaks could not end its answers."""
    if tokenizer.eos_token_id is None:
        raise PresageError("this model cannot end an answer: its tokenizer has no eos_token; give --mode readout")


def context_of(config: Config, weights: Weights) -> float:
    """The most tokens of a question with its answer: as many as the model takes, or fewer by the configuration."""
    return min(weights.context, config.context or math.inf)


def fitting(examples: list[Example], context: float, say: Callable[[str], None]) -> list[Example]:
    """The examples that are no longer than the context. Raises PresageError if there are none."""
    found = [each for each in examples if len(each) <= context]
    if not found:
        raise PresageError(f"every question has more tokens than a context of {context}")
    if left := len(examples) - len(found):
        say(f"sft: {left} of {len(examples)} questions are left out: they have more than {context} tokens")
    return found


def first_difference(rows: Sequence[Sequence[int]]) -> int | None:
    """The first place in which rows differ that begin alike; None if there is none that all have.

    >>> first_difference([[5, 6, 7], [5, 8, 7]]), first_difference([[5, 6], [5]]), first_difference([[5, 6]])
    (1, None, None)
    """
    return next((place for place, tokens in enumerate(zip(*rows, strict=False)) if len(set(tokens)) > 1), None)


def with_lora(model: Any, rank: int, seed: int) -> Any:
    """The model with a LoRA adapter in every linear layer, which alone is trained. For rank 0, all weights are trained.
    A model that has an adapter is returned unchanged."""
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


def _leave_inputs(model: Any) -> None:
    """Do not cast the inputs of adapters to single precision. Adapters are trained in single precision, but under
    autocast the machine computes in half precision anyway, and the casts take longer than the adapters."""
    for module in model.modules():
        if hasattr(module, "cast_input_dtype_enabled"):
            module.cast_input_dtype_enabled = False


def compile_layers(model: Any) -> None:
    """Let torch compile the layers at their first call. Equal layers share the code; row lengths are dynamic."""
    blocks = set(getattr(model, "_no_split_modules", None) or ())
    for module in model.modules():
        if type(module).__name__ in blocks:
            module.compile(dynamic=True)


def write_result(model: Any, weights: Weights, folder: Path) -> None:
    """Write the trained adapter or weights as safetensors in half precision, with the tokenizer. The file `done` is
    there only while all others are whole."""
    torch, _ = import_libraries()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "done").unlink(missing_ok=True)
    small = {name: each.to(torch.bfloat16) for name, each in model.state_dict().items()}
    if hasattr(model, "peft_config"):
        import_peft()
        from peft.utils import get_peft_model_state_dict

        small = get_peft_model_state_dict(model, small, save_embedding_layers=False)
        from safetensors.torch import save_file

        file = folder / "adapter_model.safetensors"
        with checkpoint.written(file):
            save_file({name: each.contiguous().cpu() for name, each in small.items()}, file)
        config = next(iter(model.peft_config.values()))
        config.inference_mode = True
        config.save_pretrained(str(folder))
    else:
        with checkpoint.written(folder / "model.safetensors"):
            model.save_pretrained(str(folder), state_dict=small, safe_serialization=True)
    (weights.processor or weights.tokenizer).save_pretrained(str(folder))
    (folder / "done").touch()


def description(config: Config, stage: str, temperature: float = 1.0, answers: Sequence[str] = ()) -> Description:
    """The description for the folder of a training after this stage."""
    made = f"{stage}/{RESULT}"
    adapter, weights = (made, "") if config.sft.lora_rank else ("", made)
    advised = config.questions.advised and not answers
    base = str(Path(config.model).resolve()) if Path(config.model).exists() else config.model
    return Description(base, adapter, weights, config.mode, temperature, tuple(answers), advised)


def precision_of(config: Config) -> str:
    """The precision of the loaded weights. If all weights are trained, it is fp32; autocast still computes in bf16."""
    return config.precision if config.sft.lora_rank else "fp32"


def _accelerator(torch: Any, config: Config) -> Any:
    try:
        import accelerate
    except ImportError as error:
        raise PresageError(f"training needs the accelerate package; {install('train')}") from error
    has_gpu = torch.cuda.is_available()
    half = config.precision != "fp32" and has_gpu
    return accelerate.Accelerator(mixed_precision="bf16" if half else "no", cpu=not has_gpu)
