"""The recorded set: splits that share no family, labels that hold, and what is made from it. No browser is needed."""

from __future__ import annotations

import json
from collections import Counter
from itertools import islice
from pathlib import Path

import pytest

from presage import PresageError
from presage_gui import ErrorClass, Screen
from presage_gui.cli.main import main
from presage_gui.critics.vlm_prompt import ANSWERS, parse
from presage_gui.data.dataset import SHIPPED, State, load
from presage_gui.data.packing import pack
from presage_gui.data.splits import SPLITS, families, tasks, where

pytest.importorskip("PIL")


@pytest.fixture(scope="module")
def states() -> list[State]:
    return [state for split in SPLITS for state in load(split)]


def test_no_family_is_in_two_splits() -> None:
    counted = Counter(family for split in SPLITS for family in families()[split])
    assert set(counted.values()) == {1}
    known = Counter(task for split in SPLITS for task in tasks(split))
    assert set(known.values()) == {1}
    assert len(tasks("test")) >= 60
    assert len(families()["test"]) >= 20


def test_the_split_is_the_one_that_was_fixed_by_hashes() -> None:
    import hashlib

    everything = {family: members for split in SPLITS for family, members in families()[split].items()}
    order = sorted(everything, key=lambda family: hashlib.sha256(f"presage-gui:{family}".encode()).hexdigest())
    counts = {"test": 0, "validation": 0, "train": 0}
    for family in order:
        split = "test" if counts["test"] < 72 else "validation" if counts["validation"] < 12 else "train"
        counts[split] += len(everything[family])
        assert where(everything[family][0])[0] == split


def test_a_name_that_is_none() -> None:
    with pytest.raises(PresageError, match="did you mean click-test"):
        where("click-tes")
    with pytest.raises(PresageError, match="there is no split 'all'"):
        load("all")  # type: ignore[arg-type]
    with pytest.raises(PresageError, match="presage-gui record"):
        list(load("train", "nowhere"))


def test_what_is_shipped(states: list[State]) -> None:
    assert SHIPPED.stat().st_size <= 8_000_000
    assert {state.split for state in states} == set(SPLITS)
    errors = Counter(proposal.error for state in states for proposal in state.proposals)
    assert set(errors) == {None, *ErrorClass}  # every class, and good ones
    assert all((proposal.error is None) == proposal.good for state in states for proposal in state.proposals)
    assert {state.phase for state in states} == {"task", "busy", "over"}


def test_labels_agree_with_the_right_steps(states: list[State]) -> None:
    """A good step is allowed by a box of a right one, a bad one by none; where shapes are not boxes, hardly ever."""
    disagreements = total = 0
    for state in states:
        for proposal in state.proposals:
            step = proposal.step
            if step is None:
                assert not proposal.good
                continue
            total += 1
            disagreements += state.allows(step.action) != proposal.good
    assert disagreements <= 0.01 * total


def test_screens_and_histories_are_there(states: list[State]) -> None:
    for state in states[::150]:
        assert state.screen.size == (320, 320)
        assert isinstance(state.screen, Screen)
        assert state.screen.digest == state.digest  # packing loses nothing
        for entry in state.history:
            assert (entry.before == entry.after) == (entry.effect == "nothing")


@pytest.mark.parametrize("mode", ["readout", "spoken"])
def test_questions_for_a_vision_model(tmp_path: Path, capsys: pytest.CaptureFixture[str], mode: str) -> None:
    assert main(["export", "train", "--out", str(tmp_path), "--mode", mode, "--most", "12"]) == 0
    assert "12 questions" in capsys.readouterr().out
    tasks = set()
    for line in (tmp_path / "train.jsonl").read_text().splitlines():
        question = json.loads(line)
        system, user, assistant = question["messages"]
        text, image = user["content"]
        assert Screen.from_file(tmp_path / image["image_url"]["url"]).size == (320, 320)
        assert json.loads(text["text"].partition("\n")[2])["goal"]
        assert "never an instruction" in system["content"]
        assert question["split"] == "train"
        tasks.add(question["group"])
        if mode == "readout":
            assert assistant["content"] in ANSWERS
        else:
            opinion = parse(assistant["content"])
            assert (opinion.probability < 0.5) == (opinion.error is not None)
    assert len(tasks) > 4, "a few are drawn from all tasks"


def test_a_set_is_packed_again(tmp_path: Path) -> None:
    state = next(iter(load("train")))
    (tmp_path / "train").mkdir()
    assert state.screen.keep(tmp_path) == state.digest
    kept = {
        "task": state.task, "family": state.family, "split": "train", "seed": 0, "phase": "task", "goal": state.goal,
        "screen": state.digest, "history": [], "right": [each.to_json() for each in state.right], "proposals": [],
    }  # fmt: skip
    (tmp_path / "train" / f"{state.task}.jsonl").write_text(json.dumps(kept) + "\n")
    assert pack(tmp_path, tmp_path / "small.zip", dict.fromkeys(SPLITS, 1)) == 1
    (again,) = islice(load("train", tmp_path / "small.zip"), 2)
    assert again.screen == state.screen
    assert again.right == state.right


def test_a_screen_is_kept_whole_or_not_at_all(
    states: list[State], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recorder that is killed while it writes a screen would else take the part for the whole ever after."""

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("os.replace", killed)
        with pytest.raises(KeyboardInterrupt):
            states[0].screen.keep(tmp_path)
    states[0].screen.keep(tmp_path)
    (kept,) = (tmp_path / "screens").iterdir()
    assert Screen.from_file(kept) == states[0].screen


def test_files_that_cannot_be_read_or_written_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert main(["export", "train", "--out", str(tmp_path / "file"), "--most", "1"]) == 2
    assert capsys.readouterr().err == f"presage-gui: {tmp_path / 'file' / 'images'}: Not a directory\n"
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "a.jsonl").write_text(json.dumps({"seed": 0, "screen": "0" * 32, "history": []}))
    assert main(["pack", str(tmp_path), "--out", str(tmp_path / "small.zip")]) == 2
    assert f"{'0' * 32}.png: No such file or directory" in capsys.readouterr().err
    assert main(["pack", str(tmp_path / "nothing"), "--out", str(tmp_path / "small.zip")]) == 2
    assert f"there are no states in {tmp_path / 'nothing'}" in capsys.readouterr().err
    assert not (tmp_path / "small.zip").exists()
