"""Questions that say what `learned` forecasts, by trees that have not seen what they forecast."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from presage import PresageError
from presage.cli.main import main
from presage.forecasters import learned_training, llm_question
from presage.forecasters.learned import LearnedForecaster
from presage.train import advice, config, questions, stages

ROOMS = {"vector_add": "adding", "gelu": "curves", "relu": "curves"}
"""Of the train split."""


def silent(line: str) -> None:
    """Nothing is to be read."""


def test_no_question_says_what_trees_know_already(roomy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, set[str]] = {}
    train_kind = learned_training.train_kind

    def notes(kind, samples, held, folder, *others) -> None:
        seen[folder.name] = {sample.problem for sample in samples}
        assert {sample.problem for sample in held} == {"sum"}
        train_kind(kind, samples, held, folder, *others)

    monkeypatch.setattr(learned_training, "train_kind", notes)
    made = advice.make([roomy], tmp_path, silent, trees=20)
    for name, room in ROOMS.items():
        assert name not in seen[made.folds["problem"][name].folder.name]
        together = {other for other, its in ROOMS.items() if its == room}
        assert not together & seen[made.folds["room"][room].folder.name]
    rng = random.Random(0)
    rows = {row.problem: row for row in roomy.rows()}
    asked = {made.of(rows["gelu"], rng).folder.name.split("_")[0] for _ in range(50)}
    assert asked == {"problem", "room"}, "each question draws which"
    assert made.of(rows["sum"], rng).folder == LearnedForecaster().folder, "of other splits, what is installed"
    with pytest.raises(PresageError, match="give another folder"):
        made.of(replace(rows["sum"], split="train"), rng)

    monkeypatch.setattr(learned_training, "train_kind", lambda *_: pytest.fail("what is there is not grown again"))
    again = advice.make([roomy], tmp_path, silent)
    assert {name: each.folder for name, each in again.folds["problem"].items()} == {
        name: each.folder for name, each in made.folds["problem"].items()
    }


def test_folds_that_were_cut_short_go_on(roomy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train_kind, grown = learned_training.train_kind, []

    def dies(kind, samples, held, folder, *others) -> None:
        grown.append(folder.name)
        if len(grown) == 3:
            raise KeyboardInterrupt
        train_kind(kind, samples, held, folder, *others)

    monkeypatch.setattr(learned_training, "train_kind", dies)
    with pytest.raises(KeyboardInterrupt):
        advice.make([roomy], tmp_path, silent, trees=20)
    advice.make([roomy], tmp_path, silent, trees=20)
    assert grown[3] == grown[2], "it begins with the fold that was cut"
    assert len(set(grown)) == len(grown) - 1


def test_one_room_has_no_trees_that_have_not_seen_it(small, tmp_path: Path) -> None:
    with pytest.raises(PresageError, match=r"too few rooms .* 'cpu' .*advised = false"):
        advice.make([small], tmp_path, silent, trees=20)


def test_a_model_that_was_trained_on_advice_is_told_of_it_again(
    roomy, tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = tmp_path / "advised.toml"
    written.write_text(
        f'model = "{tiny}"\nprecision = "fp32"\n[questions]\nadvised = true\n[sft]\nsteps = 2\nbatch = 4\n'
    )
    into = tmp_path / "model"
    stages.run(config.read(str(written)), [roomy], into, say=silent)
    texts = [each.text for each in questions.read(into / "questions", "train")]
    assert texts
    assert all("\n# Trees: fails " in text for text in texts)
    assert "advised = true" in (into / "llm.toml").read_text()
    asked = []
    conversation = llm_question.conversation
    monkeypatch.setattr(llm_question, "conversation", lambda text, mode: asked.append(text) or conversation(text, mode))
    assert main(["forecast", "sum", "rows.c", "--target", "cpu", "--forecaster", f"llm:model={into}"]) == 0
    assert asked
    assert all("\n# Trees: fails " in text for text in asked)
