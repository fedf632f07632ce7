"""With a browser and with a desktop, where they are installed: the commands as people type them."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from presage_gui import Action, History, Kind, Objection, Point, Screen, Step
from presage_gui.agents.scripted import Scripted
from presage_gui.baselines import Unchanged
from presage_gui.cli.main import main
from presage_gui.deciding import Threshold
from presage_gui.environments.desktop import Desktop
from presage_gui.episode import Choice, Episode
from presage_gui.loop import Limits, Loop

has_browser = bool(shutil.which("chromium")) and all(map(importlib.util.find_spec, ("playwright", "miniwob")))
has_desktop = all(map(shutil.which, ("Xvfb", "xdotool", "wish"))) and importlib.util.find_spec("mss") is not None
browser = pytest.mark.skipif(not has_browser, reason="needs Chromium, Playwright and miniwob")
desktop = pytest.mark.skipif(not has_desktop, reason="needs Xvfb, xdotool, wish and mss")


def run(out: Path, *words: str) -> tuple[int, Path]:
    return main(["run", *words, "--out", str(out)]), out


@browser
def test_a_task_in_a_browser(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out = run(tmp_path, "--env", "miniwob:enter-text", "--critic", "none", "--seed", "3", "--json")
    document = json.loads(capsys.readouterr().out)
    assert (status, document["success"], document["steps"]) == (0, True, 3)
    folder = out / "miniwob-enter-text-3"
    assert (folder / "episode.html").exists()
    status, _ = run(tmp_path, "--env", "miniwob:enter-text", "--critic", "none", "--seed", "3", "--json")
    assert json.loads(capsys.readouterr().out) == document  # finished: it is not run again


@browser
def test_a_task_that_does_not_exist(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, "--env", "miniwob:click-tst", "--critic", "none")[0] == 2
    assert "has no task 'click-tst'; did you mean" in capsys.readouterr().err


@desktop
def test_a_desktop_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, _ = run(tmp_path, "--env", "desktop:contacts", "--critic", "none", "--seed", "1", "--json")
    document = json.loads(capsys.readouterr().out)
    assert (status, document["success"]) == (0, True)
    assert document["steps"] >= 5


class Errs(Scripted):
    """Types a wrong text first, and presses beside the Save button until somebody objects."""

    def propose(self, goal: str, history: History, screen: Screen, objections: Sequence[Objection] = ()) -> Step:
        step = super().propose(goal, history, screen)
        if step.action.kind is Kind.TYPE and not any(each.step.action.kind is Kind.TYPE for each in history):
            return Step(Action(Kind.TYPE, text="Nobody"), step.intent)
        if "Save" in step.intent and step.action.at and not objections:
            return Step(Action(Kind.CLICK, at=Point(170, 240)), step.intent)
        return step


@desktop
def test_errors_on_a_desktop_are_mended(tmp_path: Path) -> None:
    """A wrong text is cleared and typed again. A near miss is caught at the latest when it had no effect and is tried
    again."""
    with Desktop() as environment, Episode(tmp_path, {}) as episode:
        loop = Loop(environment, Errs(environment), Unchanged(), Threshold(), episode, Limits(steps=16))
        result = loop.run(2)
        assert result.success
        assert result.revised >= 1
        assert "nothing" in [event["effect"] for event in episode.state.dispatched]  # the miss, which the history names
        objected = [each.verdict for each in episode.state.proposals if each.choice is Choice.REVISE]
        assert "changed nothing" in objected[0].explanation


@desktop
@pytest.mark.parametrize("fails", ["mss.MSS", "tempfile.mkdtemp"])
def test_a_desktop_that_cannot_be_made_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("No space left on device")

    begun: list[subprocess.Popen[bytes]] = []

    class Noted(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            begun.append(self)

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(subprocess, "Popen", Noted)
    monkeypatch.setattr(fails, fail)
    with pytest.raises(OSError, match="No space"):
        Desktop()
    assert all(process.poll() is not None for process in begun)
    assert not list(tmp_path.iterdir())


def test_help_and_errors(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "COMMAND" in capsys.readouterr().out
    assert main(["run", "--env", "nowhere:x", "--critic", "none"]) == 2
    assert "there is no environment 'nowhere'" in capsys.readouterr().err
    assert main(["run", "--env", "miniwob:click-test", "--critic", "nobody"]) == 2
    assert "there is no critic 'nobody'" in capsys.readouterr().err
    assert main(["page", "nowhere"]) == 2
    assert main(["tasks", "test"]) == 0
    assert "click-tab" in capsys.readouterr().out
