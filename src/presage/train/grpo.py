"""The third stage: reinforcement learning of spoken answers with TRL's GRPO. It asks each question several times, and
makes the answers likelier that earned more than the other answers to the same question.

Rewards are not divided by their standard deviation in a group, so that their weights count as given. Groups whose
answers all earned the same are left out of the loss. A killed training resumes from its last complete checkpoint.
"""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from presage.core.errors import PresageError, install
from presage.core.files import write_whole
from presage.forecasters import llm_question
from presage.llm.prompts import accepted, prompt_ids, prompt_text
from presage.llm.weights import Weights, import_libraries, load
from presage.train import answering, rewards
from presage.train.config import Config, Grpo
from presage.train.questions import Question, claim
from presage.train.sft import LOG, RESULT, check_ends, context_of, order, precision_of, with_lora, write_result

_STATE = "trainer_state.json"
_TEMPLATE = 200
"""More tokens than a chat template adds to a question."""


def train(
    config: Config, questions: Sequence[Question], begin: Path | None, folder: Path, say: Callable[[str], None] = print
) -> Path:
    """Train from the result of the second stage (`begin`) or from the base model, or resume. Returns the result's
    folder."""
    result = folder / RESULT
    folder.mkdir(parents=True, exist_ok=True)
    parts = ["model", "mode", "precision", "context", "sft", "grpo"]
    claim(folder / "settings.json", config, parts, "the training in {} was")
    if (result / "done").exists():
        say(f"grpo: done already, in {result}")
        return result
    torch, transformers = import_libraries()
    trl, datasets = _import_trl()
    transformers.set_seed(config.grpo.seed)
    last = last_checkpoint(folder)
    if last and (state := json.loads((last / _STATE).read_text()))["global_step"] >= config.grpo.steps:
        weights = _begun(config, last)  # killed after its last step: the trainer would run one step more
        _write_log(folder, state["log_history"])
        write_result(weights.model, weights, result)
        return result
    weights = _begun(config, begin)
    tokenizer = weights.tokenizer
    check_ends(tokenizer)
    questions = fitting(config, weights, questions, say)
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    is_shared = answering.is_possible(weights.model)
    if is_shared:
        weights.model.generate = answering.generating(weights.model)
    trainer = _trainer_class(trl, is_shared and not config.recompute)(
        model=weights.model,
        processing_class=tokenizer,
        reward_funcs=[Reward(config.grpo, tokenizer)],
        args=trl.GRPOConfig(**arguments(config, folder, torch.cuda.is_available(), _processes())),
        train_dataset=datasets.Dataset.from_list(
            [row(tokenizer, question) for question in in_order(config, questions)]
        ),
    )
    trainer.remove_callback(transformers.PrinterCallback)
    trainer.add_callback(_progress_class(transformers)(folder, say))
    if last:
        say(f"grpo: going on from {last.name}")
    trainer.train(resume_from_checkpoint=str(last) if last else None)
    if trainer.accelerator.is_main_process:
        lines = _write_log(folder, trainer.state.log_history)
        if lines:
            say(f"grpo: reward {lines[0]['reward']:.3f} at the first step, {lines[-1]['reward']:.3f} at the last")
        write_result(trainer.accelerator.unwrap_model(trainer.model), weights, result)
    trainer.accelerator.wait_for_everyone()
    return result


class Reward:
    """The callable that TRL asks for the rewards of a step's answers."""

    __name__ = "reward"

    def __init__(self, settings: Grpo, tokenizer: Any) -> None:
        self._settings, self._tokenizer = settings, tokenizer

    def __call__(
        self, completions: Sequence[Any], truth: Sequence[int], completion_ids: Sequence[Sequence[int]], **_: Any
    ) -> list[float]:
        return [
            self._one(each if isinstance(each, str) else each[-1]["content"], right, len(ids))
            for each, right, ids in zip(completions, truth, completion_ids, strict=True)
        ]

    def _one(self, text: str, truth: int, tokens: int) -> float:
        chosen, longest = self._settings, self._settings.tokens
        finish = "length" if tokens >= longest else "stop"
        return rewards.reward(chosen.reward, text, truth, weight=chosen.weight, used=tokens / longest, finish=finish)


def arguments(config: Config, folder: Path, has_gpu: bool, processes: int) -> dict[str, Any]:
    """The arguments of `GRPOConfig`. A step's answers are distributed over the GPUs, and each takes a few at a time."""
    chosen = config.grpo
    total = chosen.questions * chosen.answers
    if total % processes:
        raise PresageError(f"{total} answers of a step cannot be dealt out to {processes} processes evenly")
    share = total // processes
    at_once = next(size for size in range(min(chosen.answers_at_once, share), 0, -1) if share % size == 0)
    told = {
        "output_dir": str(folder), "max_steps": chosen.steps, "seed": chosen.seed, "data_seed": chosen.seed,
        "learning_rate": chosen.learning_rate, "lr_scheduler_type": "constant", "beta": chosen.beta,
        "temperature": chosen.temperature, "num_generations": chosen.answers, "max_completion_length": chosen.tokens,
        "per_device_train_batch_size": at_once, "gradient_accumulation_steps": share // at_once,
        "scale_rewards": "none", "loss_type": "dr_grpo", "bf16": has_gpu and config.precision != "fp32",
        "use_cpu": not has_gpu, "gradient_checkpointing": config.recompute, "report_to": "none", "logging_steps": 1,
        "save_steps": chosen.checkpoint_steps, "save_total_limit": 2, "disable_tqdm": True,
        "dataloader_pin_memory": has_gpu, "shuffle_dataset": False,
    }  # fmt: skip
    if chosen.vllm:
        told |= {"use_vllm": True, "vllm_mode": "colocate", "vllm_gpu_memory_utilization": chosen.vllm_memory}
    return told


def in_order(config: Config, questions: Sequence[Question]) -> list[Question]:
    """The questions of all steps, one after the other. TRL's own order after a resumed epoch differs from that of a
    training that was not interrupted."""
    chosen = config.grpo
    steps = (order(len(questions), step, chosen.questions, chosen.seed) for step in range(chosen.steps))
    return [questions[i] for step in steps for i in step]


def fitting(
    config: Config, weights: Weights, questions: Sequence[Question], say: Callable[[str], None]
) -> Sequence[Question]:
    """The questions that leave room for an answer in the context. Raises PresageError if there are none."""
    context, tokens = context_of(config, weights), config.grpo.tokens
    room = context - tokens

    def fits(question: Question) -> bool:
        messages = llm_question.conversation(question.text, "spoken")
        most_tokens = sum(len(each["content"].encode()) for each in messages) + _TEMPLATE
        return most_tokens <= room or len(prompt_ids(weights.tokenizer, messages)) <= room

    found = [each for each in questions if fits(each)]
    if not found:
        raise PresageError(f"no question leaves room for an answer of {tokens} tokens in a context of {context}")
    if left := len(questions) - len(found):
        say(f"grpo: {left} of {len(questions)} questions are left out: with an answer they exceed {context} tokens")
    return found


def row(tokenizer: Any, question: Question) -> dict[str, Any]:
    """A question as TRL expects it: as a conversation if the model has a chat template, else as text."""
    messages = llm_question.conversation(question.text, "spoken")
    if getattr(tokenizer, "chat_template", None):
        return {"prompt": accepted(tokenizer, messages), "truth": question.truth}
    return {"prompt": prompt_text(tokenizer, messages), "truth": question.truth}


def last_checkpoint(folder: Path) -> Path | None:
    """The last complete checkpoint; None if there is none. Later incomplete ones are removed."""
    found = sorted(folder.glob("checkpoint-*"), key=lambda path: int(path.name.rpartition("-")[2]))
    while found:
        try:
            json.loads((found[-1] / _STATE).read_text())
            return found[-1]
        except (OSError, ValueError):
            shutil.rmtree(found.pop(), ignore_errors=True)
    return None


def seconds(folder: Path) -> float:
    """The seconds of the steps before the last complete checkpoint; 0 if there is none."""
    last = last_checkpoint(folder)
    history = json.loads((last / _STATE).read_text())["log_history"] if last else []
    return float(sum(each.get("step_time", 0.0) for each in history))


def gain(folder: Path) -> dict[str, float]:
    """The mean reward of the first and of the last tenth of the steps."""
    rewards = [float(json.loads(line)["reward"]) for line in (folder / LOG).read_text().splitlines()]
    tenth = math.ceil(len(rewards) / 10)
    return {"reward_at_first": mean(rewards[:tenth]), "reward_at_last": mean(rewards[-tenth:])}


def _begun(config: Config, begin: Path | None) -> Weights:
    """The model to train further: `begin`, the result of an earlier stage or a checkpoint, or else the base model."""
    if begin is None:
        weights = load(config.model, precision=precision_of(config), trainable=True)
    elif config.sft.lora_rank:
        weights = load(config.model, begin, precision=precision_of(config), trainable=True)
    else:
        weights = load(str(begin), precision=precision_of(config), trainable=True)
    model = with_lora(weights.model, config.sft.lora_rank, config.grpo.seed)
    return Weights(model, weights.tokenizer, weights.name, weights.description)


def _trainer_class(trl: Any, is_shared: bool) -> Any:
    """TRL's trainer without the groups whose answers earned the same. Their advantages are 0, so they have no gradient;
    this trainer also excludes them from the mean. is_shared: answers to one question share its computation."""

    class Trainer(trl.GRPOTrainer):  # type: ignore[misc]
        def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
            found: dict[str, Any] = super()._generate_and_score_completions(inputs)
            told = self.accelerator.gather((found["advantages"].abs() > 1e-9).float())
            found["advantages"] = found["advantages"] / told.mean().clamp(min=1 / told.numel())
            return found

        def _get_per_token_logps_and_entropies(
            self, model: Any, input_ids: Any, attention_mask: Any, logits_to_keep: int, **more: Any
        ) -> tuple[Any, Any, Any]:
            is_whole = (more.get("batch_size") or len(input_ids)) >= len(input_ids)
            if is_shared and is_whole and not more.get("compute_aux_loss"):
                with self.accelerator.autocast():
                    told = answering.log_probabilities(model, input_ids, attention_mask, logits_to_keep)
                if told is not None:
                    return told.log_probs, told.entropy, None
            found: tuple[Any, Any, Any] = super()._get_per_token_logps_and_entropies(
                model, input_ids, attention_mask, logits_to_keep, **more
            )
            return found

    return Trainer


def _progress_class(transformers: Any) -> Any:
    """A callback that tells of about twenty steps, and keeps the log of every step."""

    class Progress(transformers.TrainerCallback):  # type: ignore[misc]
        def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
            self._folder, self._say = folder, say

        def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **_: Any) -> None:
            if not logs or "reward" not in logs or not state.is_world_process_zero:
                return
            _write_log(self._folder, state.log_history)
            if state.global_step % max(1, state.max_steps // 20) == 0:
                length, seconds = logs.get("completions/mean_length", math.nan), logs.get("step_time", math.nan)
                self._say(
                    f"grpo: step {state.global_step} of {state.max_steps}, reward {logs['reward']:.3f},"
                    f" {length:.0f} tokens an answer, {seconds:.1f} s"
                )

    return Progress


def _write_log(folder: Path, history: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Write the lines of all steps, and return them."""
    lines = [each for each in history if "reward" in each]
    write_whole(folder / LOG, "".join(f"{json.dumps(each)}\n" for each in lines))
    return lines


def _processes() -> int:
    import accelerate

    torch, _ = import_libraries()
    return int(accelerate.PartialState(cpu=not torch.cuda.is_available()).num_processes)


def _import_trl() -> tuple[Any, Any]:
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")  # else TRL sends usage data
    try:
        import datasets
        import trl
        from trl import GRPOConfig, GRPOTrainer  # noqa: F401  where a part of it cannot be imported, say so here
    except ImportError as error:
        raise PresageError(f"reinforcement learning needs the trl package ({error}); {install('train')}") from error
    return trl, datasets
