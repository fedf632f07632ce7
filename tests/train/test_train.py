"""Training from a recording to a forecast: each stage alone, killed and continued, and what it makes used."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from presage import PresageError, load_recording
from presage.cli.main import main
from presage.devices import recording
from presage.devices.recorded import RecordedDevice
from presage.forecasters import llm_question
from presage.llm.prompts import prompt_ids
from presage.llm.readout import ReadOut
from presage.llm.weights import Description, load
from presage.store.lock import Lock
from presage.train import config, grpo, merging, questions, sft, stages

CONFIG = """\
model = "{model}"
mode = "{mode}"
precision = "fp32"
licence = "none"

[questions]
per_kernel = 3

[sft]
steps = 20
batch = 8
pass_tokens = 8192
learning_rate = 5e-3
lora_rank = {rank}
checkpoint_seconds = 0.0

[grpo]
steps = 16
questions = 8
answers = 4
tokens = 30
learning_rate = 1e-3
checkpoint_steps = 8
answers_at_once = 32
"""


@pytest.fixture
def written(tmp_path: Path, tiny: Path):
    """written(mode, rank): a configuration's file."""

    def write(mode: str = "readout", rank: int = 4) -> str:
        file = tmp_path / f"{mode}{rank}.toml"
        file.write_text(CONFIG.format(model=tiny, mode=mode, rank=rank))
        return str(file)

    return write


def test_a_model_that_is_read_out_is_trained_and_forecasts(
    written, small, tmp_path: Path, losses, capsys: pytest.CaptureFixture[str]
) -> None:
    into = tmp_path / "model"
    command = ["train", "llm", "--config", written(), "--recording", str(small.path), "--into", str(into), "--json"]
    assert main(command) == 0
    told = json.loads(capsys.readouterr().out)
    assert {"README.md", "model.json", "llm.toml", "sft/result/adapter_model.safetensors"} <= set(told["files"])
    log = losses(into / "sft")
    assert len(log) == 20
    assert np.mean(log[-5:]) < np.mean(log[:5])
    assert "| validation split | before recalibration | after recalibration |" in (into / "README.md").read_text()
    assert main(command) == 0, "what is done is not done again"
    assert losses(into / "sft") == log
    capsys.readouterr()
    ask = ["forecast", "sum", "rows.c", "--target", "cpu", "--forecaster", f"llm:model={into}", "--json"]
    assert main(ask) == 0
    (forecast,) = json.loads(capsys.readouterr().out)["forecasts"]
    assert forecast["forecast"], forecast["notes"]
    assert sum(each["probability"] for each in forecast["forecast"]["bins"]) == pytest.approx(1)


class KilledError(BaseException):
    """As good as SIGKILL: nothing of ours catches it."""


@pytest.mark.parametrize("instant", ["before", pytest.param("after", marks=pytest.mark.sweep)])
def test_a_training_that_is_killed_goes_on_to_the_same_end(
    written, small, tmp_path: Path, losses, monkeypatch: pytest.MonkeyPatch, instant: str
) -> None:
    """Cut while the seventh checkpoint is being put in its place; then compared with one that was not cut."""
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    chosen = config.read(written("readout", 0), sft__steps=10)
    stages.run(chosen, [small], whole, say=str)
    calls, replace = [], os.replace

    def dies(part, place) -> None:
        if str(place).endswith("checkpoint.safetensors"):
            calls.append(place)
            if instant == "after" or len(calls) != 7:
                replace(part, place)
            if len(calls) == 7:
                raise KilledError
        else:
            replace(part, place)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", dies)
        with pytest.raises(KilledError):
            stages.run(chosen, [small], cut, say=str)
    told: list[str] = []
    stages.run(chosen, [small], cut, say=told.append)
    assert any(f"going on at step {7 if instant == 'after' else 6} of 10" in line for line in told)
    assert losses(cut / "sft") == pytest.approx(losses(whole / "sft"), rel=1e-5)
    facts = [json.loads((folder / "facts.json").read_text())["scores"] for folder in (whole, cut)]
    assert facts[0]["before recalibration"]["rps"] == pytest.approx(facts[1]["before recalibration"]["rps"], rel=1e-4)


@pytest.fixture(scope="module")
def spoken(tiny: Path, small, tmp_path_factory: pytest.TempPathFactory) -> tuple[config.Config, Path]:
    """A model that speaks, after all stages, and its configuration. There are questions for three steps of the last."""
    pytest.importorskip("trl", reason="needs the train extra")
    pytest.importorskip("peft", reason="needs the train extra")
    folder = tmp_path_factory.mktemp("spoken")
    (folder / "spoken.toml").write_text(CONFIG.format(model=tiny, mode="spoken", rank=0))
    changes = {
        "sft__steps": 120, "sft__limit": 24, "grpo__steps": 9, "grpo__checkpoint_steps": 2, "grpo__answers": 16,
        "grpo__answers_at_once": 64, "grpo__learning_rate": 5e-4,
    }  # fmt: skip
    chosen = config.read(str(folder / "spoken.toml"), **changes)
    stages.run(chosen, [small], folder / "model", say=str)
    return chosen, folder / "model"


def test_a_model_that_speaks_learns_the_form_and_then_earns_more(spoken, small, tmp_path: Path, losses) -> None:
    chosen, whole = spoken
    into = shutil.copytree(whole, tmp_path / "model")
    rewards = losses(into / "grpo", "reward")
    assert len(rewards) == 9
    card = (into / "README.md").read_text()
    assert "llm:model=" not in card, "a model that speaks is asked at an endpoint"
    assert f"reward at first {rewards[0]:.4g}, reward at last {rewards[-1]:.4g}" in card
    assert np.mean(rewards[-3:]) > np.mean(rewards[:3]), rewards
    assert (into / "grpo/result/model.safetensors").exists()
    (into / "grpo/result/done").unlink()
    stages.run(chosen, [small], into, ["grpo"], say=str)
    assert losses(into / "grpo", "reward") == rewards, "goes on from the last checkpoint, which is the end"


def test_reinforcement_learning_that_is_killed_goes_on_to_the_same_end(
    spoken, small, tmp_path: Path, losses, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the third epoch."""
    chosen, whole = spoken
    cut = shutil.copytree(whole, tmp_path / "cut", ignore=shutil.ignore_patterns("grpo"))
    calls, reward = [], grpo.Reward.__call__

    def dies(self, *arguments, **more):
        calls.append(more)
        if len(calls) == 8:
            raise KilledError
        return reward(self, *arguments, **more)

    with monkeypatch.context() as patch:
        patch.setattr(grpo.Reward, "__call__", dies)
        with pytest.raises(KilledError):
            stages.run(chosen, [small], cut, say=str)
    assert len(losses(cut / "grpo", "reward")) == 7, "each step is in the log at once"
    told: list[str] = []
    fewer = replace(chosen.grpo, answers_at_once=chosen.grpo.answers_at_once // 2)
    stages.run(replace(chosen, grpo=fewer), [small], cut, say=told.append)
    assert "grpo: going on from checkpoint-6" in told
    assert any(re.fullmatch(r"grpo: step 9 of 9, reward \d\.\d+, \d+ tokens an answer, .* s", line) for line in told)
    assert len(set(losses(whole / "grpo", "reward"))) > 4, "answers differ"
    for key in ("reward", "completions/mean_length", "grad_norm"):
        assert losses(cut / "grpo", key) == pytest.approx(losses(whole / "grpo", key), rel=1e-4, abs=1e-7)


def test_a_training_that_runs_out_of_memory_goes_on_with_less(
    written, small, tmp_path: Path, losses, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch", reason="needs the train extra")
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    stages.run(config.read(written(), sft__steps=8), [small], whole, say=str)
    loss, calls = sft.Training._loss, []

    def large(self, examples):
        calls.append(len(examples))
        if len(calls) > 5:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return loss(self, examples)

    with monkeypatch.context() as patch:
        patch.setattr(sft.Training, "_loss", large)
        with pytest.raises(PresageError, match=r"sft: the GPU's memory .* lower sft.pass_tokens, .*recompute"):
            stages.run(config.read(written(), sft__steps=8), [small], cut, say=str)
    told: list[str] = []
    stages.run(config.read(written(), sft__steps=8, sft__pass_tokens=2048), [small], cut, say=told.append)
    assert any("going on at step" in line for line in told)
    assert losses(cut / "sft") == pytest.approx(losses(whole / "sft"), rel=1e-4)


@pytest.mark.parametrize("said", ["No space left on device (os error 28)", "[enforce fail at inline_container.cc:672]"])
def test_a_full_disk_ends_a_stage_in_words(written, small, tmp_path: Path, monkeypatch, said: str) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError(said)

    stages.run(config.read(written()), [small], tmp_path, ["questions"], say=str)
    monkeypatch.setattr(sft, "train", fails)
    with pytest.raises(PresageError, match=r"sft: the disk of .* is full; with more room"):
        stages.run(config.read(written()), [small], tmp_path, ["sft"], say=str)


def test_stages_alone_and_other_settings(written, small, tmp_path: Path) -> None:
    into = tmp_path / "model"
    chosen = config.read(written())
    with pytest.raises(PresageError, match="--stage questions"):
        stages.run(chosen, [small], into, ["sft"])
    stages.run(chosen, [small], into, ["questions"])
    there = {file: file.stat().st_mtime_ns for file in (into / "questions").iterdir()}
    stages.run(chosen, [small], into, ["questions"])
    assert {file: file.stat().st_mtime_ns for file in (into / "questions").iterdir()} == there
    with pytest.raises(PresageError, match="other settings"):
        stages.run(config.read(written(), questions__per_kernel=1), [small], into, ["questions"])
    with pytest.raises(PresageError, match="read out has no stage grpo"):
        stages.run(chosen, [small], into, ["grpo"])


def test_questions_keep_splits_mix_anchors_and_hold_failures(written, small, tmp_path: Path) -> None:
    questions.make(config.read(written()), [small], tmp_path, str)
    learned = questions.read(tmp_path, "train")
    assert {each.problem for each in learned} == {"vector_add", "gelu", "relu"}
    assert {each.problem for each in questions.read(tmp_path, "validation")} == {"sum"}
    assert all(len({q.anchor for q in learned if q.problem == problem}) > 2 for problem in ("gelu", "relu"))
    assert {each.truth == 0 for each in learned} == {True, False}
    assert all((each.log2_speedup is None) == (each.truth == 0) for each in learned)
    assert all(each.kernel != each.anchor for each in learned)
    assert any("# Measured" in each.text for each in learned)
    few, more = questions.read(tmp_path, "train", 5), questions.read(tmp_path, "train", 9)
    assert more[:5] == few
    with pytest.raises(PresageError, match="no questions of the test_op split"):
        questions.read(tmp_path, "test_op")


def test_a_limit_makes_the_first_questions_only(written, small, tmp_path: Path, monkeypatch) -> None:
    """They are those that all questions begin with, also where a kernel gives fewer questions than asked for, and where
    the stage was killed."""
    every, few = tmp_path / "every", tmp_path / "few"
    chosen = config.read(written(), sft__limit=9, questions__validation=3, questions__per_kernel=9, sft__seed=5)
    questions.make(config.read(written(), questions__validation=3, questions__per_kernel=9), [small], every, str)
    drawn, calls = questions.draw, []

    def dies(*given, **more):
        calls.append(given)
        if len(calls) == 3:
            raise KilledError
        yield from drawn(*given, **more)

    monkeypatch.setattr(questions, "draw", dies)
    with pytest.raises(KilledError):
        questions.make(chosen, [small], few, str)
    questions.make(chosen, [small], few, str)
    assert questions.read(few, "train", 9, 5) == questions.read(every, "train", 9, 5)
    assert questions.read(few, "validation", 3) == questions.read(every, "validation", 3)
    lines = sum(len(file.read_text().splitlines()) for file in few.glob("*.jsonl"))
    assert lines == 9 + 3
    told: list[str] = []
    questions.make(chosen, [small], few, told.append)
    assert told[-1].startswith("questions: 0 operations, 0 questions; ")
    questions.claim_for(chosen, every)  # all questions serve any limit
    with pytest.raises(PresageError, match=r"has only the first 9 questions in the order of seed 5; .*--into"):
        questions.claim_for(config.read(written(), questions__validation=3, questions__per_kernel=9), few)


def test_modules_without_source_are_drawn_if_they_have_reports() -> None:
    modules = load_recording("h200_modules")
    known = modules.columns("problem", "split", "source")
    problem = next(p for p, split, source in zip(*known.values(), strict=True) if split == "train" and not source)
    device = RecordedDevice(modules)
    rows = list(device.rows(problem).values())
    drawn = list(questions.draw(device, problem, rows, config.Questions()))
    hidden = {row.hash for row in rows if not row.source}
    assert any(each.kernel in hidden and "): source not shown\n" in each.text for each in drawn)


def test_layers_are_compiled_and_nothing_else(tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch", reason="needs the train extra")
    compiled = []
    monkeypatch.setattr(torch.nn.Module, "compile", lambda self, **options: compiled.append((type(self), options)))
    model = sft.with_lora(load(str(tiny)).model, 4, 0)
    sft.compile_layers(model)
    assert [kind.__name__ for kind, _ in compiled] == ["LlamaDecoderLayer"] * 2
    assert all(options == {"dynamic": True} for _, options in compiled), "one for rows of any length"


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("[sft]\nlearning_rate = nan", "sft.learning_rate must be 0 or more, not nan"),
        ("[sft]\nlearning_rate = 0", "sft.learning_rate must be more than 0"),
        ("[sft]\nepochs = 0.0", "sft.epochs must be more than 0"),
        ("[sft]\nlimit = -1", "sft.limit must be 0 or more"),
        ("[sft]\nwarmup = 2.0", "sft.warmup is a share"),
        ("[sft]\nepochs = 1e308", "sft.epochs must be at most 1000000"),
        ("[grpo]\nseed = 4294967296", "grpo.seed must be at most 4294967295, not 4294967296"),
        ("[grpo]\nquestions = 0", "grpo.questions must be 1 or more"),
        ("[grpo]\nanswers_at_once = 0", "grpo.answers_at_once must be 1 or more"),
        ("[grpo]\ntemperature = 0.0", "grpo.temperature must be more than 0"),
        ('precision = "fp16"', "the precision is bf16 or fp32, not 'fp16'"),
        ("sft = 3", "sft must be a table"),
    ],
)
def test_settings_that_cannot_be_are_refused_at_once(tmp_path: Path, setting: str, told: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(f'model = "x"\n{setting}\n')
    with pytest.raises(PresageError, match=told):
        config.read(str(file), grpo__steps=3)
    if setting == "sft = 3":
        with pytest.raises(PresageError, match=told):
            config.read(str(file), sft__steps=3)


def test_gradients_that_are_not_finite_end_the_training_before_they_are_applied(
    written, small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loss is finite, and the checkpoint stays so."""
    from safetensors.torch import load_file

    whole = sft.Training._loss
    calls: list[int] = []

    def spoilt(self, examples):
        calls.append(len(examples))
        loss = whole(self, examples)
        if len(calls) > 3:
            loss.register_hook(lambda gradient: gradient * float("nan"))
        return loss

    monkeypatch.setattr(sft.Training, "_loss", spoilt)
    with pytest.raises(PresageError, match="norm of the gradients is nan at step 4"):
        stages.run(config.read(written("readout", 0)), [small], tmp_path, say=str)
    kept = load_file(tmp_path / "sft/checkpoint.safetensors")
    assert all(bool(each.float().isfinite().all()) for each in kept.values())


def test_one_training_at_a_time_works_on_a_folder(written, small, tmp_path: Path) -> None:
    with (
        closing(Lock(tmp_path / stages.LOCK)),
        pytest.raises(PresageError, match=f"process {os.getpid()} is working on"),
    ):
        stages.run(config.read(written()), [small], tmp_path, ["questions"], say=str)


def test_questions_of_other_recordings_are_refused(written, small, roomy, tmp_path: Path) -> None:
    stages.run(config.read(written()), [small], tmp_path, ["questions"], say=str)
    with pytest.raises(PresageError, match="are of the recordings small, not roomy"):
        stages.run(config.read(written()), [roomy], tmp_path, ["questions"], say=str)
    with pytest.raises(PresageError, match=r"the questions in .* were .* settings: questions.per_kernel was 3, now 1;"):
        stages.run(config.read(written(), questions__per_kernel=1), [small], tmp_path, ["sft"], say=str)
    with pytest.raises(PresageError, match="two recordings are named small"):
        stages.run(config.read(written()), [small, small], tmp_path, ["questions"], say=str)
    file = tmp_path / "questions" / "small.relu.jsonl"
    file.write_text(file.read_text()[:100])
    with pytest.raises(PresageError, match=r"small\.relu\.jsonl is damaged: .*; remove it, and it is written again"):
        stages.run(config.read(written()), [small], tmp_path, ["sft"], say=str)


def test_damaged_notes_of_a_training_are_told_or_begun_anew(written, small, tmp_path: Path) -> None:
    stages.run(config.read(written(), sft__steps=1), [small], tmp_path, ["questions"], say=str)
    (tmp_path / "facts.json").write_text("[]")
    (tmp_path / "sft").mkdir()
    log = tmp_path / "sft" / "log.jsonl"
    log.write_text('{"step": 1')
    with pytest.raises(PresageError, match=r"log\.jsonl is damaged: .*; remove it"):
        stages.run(config.read(written(), sft__steps=1), [small], tmp_path, ["sft"], say=str)


def test_of_several_processes_the_first_merges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    merged = []
    monkeypatch.setattr(merging, "merge", lambda into, say: merged.append(into))
    for rank in ("0", "1"):
        monkeypatch.setenv("RANK", rank)
        stages.merge(tmp_path)
    assert merged == [tmp_path]


def test_lines_are_printed_at_once_into_a_file_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A training that is killed, or looked at while it runs, has told how far it is."""
    written = io.BytesIO()
    seen = []

    def trains(*given: object) -> None:
        given[-1]("sft: step 1 of 2")  # type: ignore[operator]
        seen.append(written.getvalue())

    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(written, encoding="utf-8"))
    monkeypatch.setattr(stages, "run", trains)
    assert main(["train", "llm", "--config", "tiny", "--into", str(tmp_path)]) == 0
    assert seen == [b"sft: step 1 of 2\n"]


def test_a_licence_is_that_of_the_configuration_s_own_model() -> None:
    assert config.read("small").licence == "apache-2.0"
    assert config.read("small", model="models/another.gguf").licence == ""


def test_an_operation_is_learned_or_tested(written, small, tmp_path: Path) -> None:
    def recorded(name: str, split: str):
        rows = [replace(row, split=split) for row in RecordedDevice(small).rows("relu").values()]
        return recording.write(tmp_path / f"{name}.parquet", rows, {"name": name, "kind": "cpu", "hardware": "x"})

    chosen, tested = config.read(written()), recorded("tested", "test_op")
    with pytest.raises(PresageError, match="relu is in two splits, train and test_op"):
        questions.make(chosen, [small, tested], tmp_path / "both", str)
    with pytest.raises(PresageError, match="no operations of the train split, to learn from; they are of: test_op"):
        questions.make(chosen, [tested], tmp_path / "none", str)


def test_a_recording_without_a_validation_split_is_learned_from_and_not_scored(written, small, tmp_path: Path) -> None:
    rows = list(RecordedDevice(small).rows("relu").values())
    alone = recording.write(tmp_path / "a.parquet", rows, {"name": "a", "kind": "cpu", "hardware": "a formula"})
    stages.run(config.read(written(), sft__steps=1), [alone], tmp_path / "model", say=str)
    assert load(str(tmp_path / "model")).description.temperature == 1
    assert "Not scored: " in (tmp_path / "model" / "README.md").read_text()


def test_the_card_counts_as_missing_what_the_forecaster_does_not_answer(tiny: Path, small) -> None:
    device = RecordedDevice(small)
    asked = list(questions.draw(device, "relu", list(device.rows("relu").values()), config.Questions()))[:6]
    logs = ReadOut(load(str(tiny)), llm_question.ANSWERS).log_probabilities(
        [llm_question.conversation(each.text, "readout") for each in asked]
    )
    unanswered = [llm_question.from_logarithms(row) is None for row in logs]
    told, temperature = stages.validate(tiny, asked)
    assert any(unanswered), "it knows nothing"
    assert told["before recalibration"]["missing"] == np.mean(unanswered)
    assert temperature > 0


def test_questions_longer_than_the_configuration_s_context_are_left_out(written, small, tmp_path: Path, tiny) -> None:
    stages.run(config.read(written()), [small], tmp_path, ["questions"], say=str)
    asked = [each.conversation("readout").messages for each in questions.read(tmp_path / "questions", "train")]
    tokenizer = load(str(tiny)).tokenizer
    lengths = sorted(len(prompt_ids(tokenizer, each)) for each in asked)
    said: list[str] = []
    chosen = config.read(written(), context=lengths[len(lengths) // 2], sft__steps=1)
    stages.run(chosen, [small], tmp_path, say=said.append)
    (line,) = (each for each in said if "left out" in each)
    assert line.endswith(f"questions are left out: they have more than {chosen.context} tokens")
    with pytest.raises(PresageError, match="context must be 0 or more, not -1"):
        config.read(written(), context=-1)


def test_a_configuration_names_its_recording(written, small, tmp_path: Path, monkeypatch) -> None:
    asked = []
    monkeypatch.setattr(stages, "run", lambda chosen, recordings, *_: asked.append([each.name for each in recordings]))
    file = tmp_path / "named.toml"
    file.write_text(f'model = "x"\nrecording = "{small.path}"\n')
    for more in ([], ["--recording", "cpu"]):
        assert main(["train", "llm", "--config", str(file), "--into", str(tmp_path), *more]) == 0
    assert asked == [["small"], ["cpu"]]


def test_reinforcement_learning_begins_from_what_is_done(written, small, tmp_path: Path) -> None:
    chosen = config.read(written("spoken"))
    stages.run(chosen, [small], tmp_path, ["questions"], say=str)
    (tmp_path / "sft").mkdir()
    with pytest.raises(PresageError, match="the stage sft was begun and is not done; finish it first"):
        stages.run(chosen, [small], tmp_path, ["grpo"], say=str)


def test_the_questions_stage_says_how_far_it_is(written, small, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(questions, "_SAYS_EVERY", 0.0)
    told: list[str] = []
    for _ in range(2):
        questions.make(config.read(written()), [small], tmp_path, told.append)
    written = sum(len(file.read_text().splitlines()) for file in tmp_path.glob("*.jsonl"))
    assert [line.partition(" operations")[0] for line in told[:4]] == [f"questions: {n} of 4" for n in (1, 2, 3, 4)]
    assert told[4:] == [
        f"questions: 4 operations, {written} questions",
        "questions: 0 operations, 0 questions; 4 operations were there",
    ]


def test_a_result_that_is_written_again_is_not_done_until_it_is_whole(tiny, tmp_path: Path, monkeypatch) -> None:
    loaded = load(str(tiny))
    sft.write_result(loaded.model, loaded, tmp_path)
    assert (tmp_path / "done").exists()

    def dies(*_: object, **more: object) -> None:
        raise KilledError

    monkeypatch.setattr(loaded.model, "save_pretrained", dies)
    with pytest.raises(KilledError):
        sft.write_result(loaded.model, loaded, tmp_path)
    assert not (tmp_path / "done").exists()


def test_a_kernel_is_never_its_own_anchor(written, small, tmp_path: Path) -> None:
    """Even if it is the only one of its operation that works."""
    found = RecordedDevice(small).rows("relu").values()
    first, last = (next(each for each in found if (each.status == "ok") is works) for works in (True, False))
    rows = [replace(each, anchor=first.hash) for each in (first, last)]
    alone = recording.write(tmp_path / "a.parquet", rows, {"name": "a", "kind": "cpu", "hardware": "a formula"})
    questions.make(config.read(written()), [alone], tmp_path / "q", str)
    asked = questions.read(tmp_path / "q", "train")
    assert [(each.anchor, each.kernel) for each in asked] == [(first.hash, last.hash)]


def test_the_cost_in_the_card_survives_another_run(written, small, tmp_path: Path) -> None:
    chosen = config.read(written("readout", 4), sft__steps=2)
    stages.run(chosen, [small], tmp_path, say=str)
    seconds = json.loads((tmp_path / "facts.json").read_text())["stages"]["sft"]["seconds"]
    assert seconds > 0
    stages.run(chosen, [small], tmp_path, say=str)
    assert json.loads((tmp_path / "facts.json").read_text())["stages"]["sft"]["seconds"] == seconds


def test_a_model_is_found_from_any_folder(written, small, tmp_path: Path, tiny, monkeypatch) -> None:
    monkeypatch.chdir(tiny.parent)
    chosen = config.read(written("readout", 4), model=tiny.name, sft__steps=1)
    stages.run(chosen, [small], tmp_path / "model", say=str)
    monkeypatch.chdir(tmp_path)
    assert load("model").description.adapter


def test_merged_weights_answer_alike_and_are_those_of_the_last_stage(written, small, tmp_path: Path) -> None:
    import torch
    import transformers

    into, chosen = tmp_path / "model", config.read(written("readout", 4))
    stages.run(chosen, [small], into, say=str)
    merged = merging.merge(into, str)
    asked = [llm_question.conversation(each.text, "readout") for each in questions.read(into / "questions", "train", 4)]
    one, other = (ReadOut(load(str(each)), llm_question.ANSWERS) for each in (into, merged))
    assert one.log_probabilities(asked) == pytest.approx(other.log_probabilities(asked), abs=0.05)
    assert other.weights.description.temperature == one.weights.description.temperature
    plain = transformers.AutoModelForCausalLM.from_pretrained(merged)
    with torch.no_grad():
        ids = prompt_ids(other.weights.tokenizer, asked[0])
        told = plain(torch.tensor([ids])).logits[0, -1].float().log_softmax(-1)
    assert told.max().item() == pytest.approx(
        other.weights.model(torch.tensor([ids])).logits[0, -1].log_softmax(-1).max().item(), abs=0.05
    )
    before = (merged / "model.safetensors").stat().st_mtime_ns
    assert merging.merge(into, str) == merged
    assert (merged / "model.safetensors").stat().st_mtime_ns == before, "what is merged is not merged again"
    shutil.copytree(into / "sft", into / "grpo")
    Description(chosen.model, adapter="grpo/result").write(into)
    merging.merge(into, str)
    assert (merged / "model.safetensors").stat().st_mtime_ns != before
