"""The loop: what passes is done, what does not goes back, budgets hold, and an episode goes on where it stopped."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from presage import PresageError
from presage_gui import (
    Action,
    Agent,
    Critic,
    Effect,
    Environment,
    ErrorClass,
    History,
    Kind,
    Objection,
    Outcome,
    Screen,
    Step,
    Verdict,
)
from presage_gui.baselines import Nothing, Unchanged
from presage_gui.cli.main import build
from presage_gui.cli.run import _configuration
from presage_gui.deciding import Threshold
from presage_gui.episode import Choice, Episode, history_of, read_events
from presage_gui.loop import Limits, Loop, Person, Result
from presage_gui.page import write_page

pytest.importorskip("PIL")


class Lamps(Environment):
    """Three lamps in a row. A click on one turns it on; the goal is to have the second one on, and no other."""

    def __init__(self) -> None:
        self.on: list[bool] = []
        self.done: list[Action] = []

    def reset(self, seed: int) -> str:
        self.on, self.done = [False] * 3, []
        self.goal = "Turn on the second lamp."
        return self.goal

    def screen(self) -> Screen:
        pixels = np.full((40, 120, 3), 255, dtype=np.uint8)
        for number, lit in enumerate(self.on):
            pixels[10:30, 40 * number + 10 : 40 * number + 30] = (250, 200, 0) if lit else (90, 90, 90)
        return Screen(pixels)

    def do(self, action: Action) -> None:
        self.done.append(action)
        if action.kind is Kind.CLICK and action.at:
            x, y = action.at.x % 40, action.at.y
            if 10 <= x < 30 and 10 <= y < 30:
                self.on[int(action.at.x // 40)] = True

    def outcome(self) -> Outcome:
        return Outcome(any(self.on), self.on == [False, True, False])


class Told(Agent):
    """Proposes what it is given, one after the other, and ends when nothing is left."""

    def __init__(self, *calls: str) -> None:
        self.calls = list(calls)
        self.heard: list[Objection] = []

    def propose(self, goal: str, history: History, screen: Screen, objections: Sequence[Objection] = ()) -> Step:
        self.heard = list(objections)
        call = self.calls.pop(0) if self.calls else "terminate(True)"
        return Step(Action.parse(call), f"do {call}")


WRONG, MISS, RIGHT = "click(20, 20)", "click(5, 5)", "click(60, 20)"


class Knows(Critic):
    """Right about everything; offers the right step as its fix."""

    def __init__(self, irreversible: bool = False) -> None:
        self.irreversible = irreversible
        self.checked = 0

    def check(self, goal: str, history: History, screen: Screen, step: Step) -> Verdict:
        self.checked += 1
        if step.action.call == RIGHT:
            return Verdict(0.7, irreversible=self.irreversible)
        return Verdict(0.1, ErrorClass.GROUNDING, "this is not the second lamp", irreversible=self.irreversible)


def run(
    folder: Path, agent: Told, critic: Critic, limits: Limits | None = None, person: Person | None = None,
    lamps: Lamps | None = None, insist: bool = False,
) -> Result:  # fmt: skip
    with Episode(folder, {"critic": type(critic).__name__}) as episode:
        return Loop(lamps or Lamps(), agent, critic, Threshold(), episode, limits, person, insist=insist).run(0)


def test_what_is_wrong_goes_back_with_the_reason_and_is_checked_again(tmp_path: Path) -> None:
    agent, critic = Told(WRONG, MISS, RIGHT), Knows()
    result = run(tmp_path, agent, critic)
    assert result.success
    assert (result.steps, result.proposals, result.revised) == (1, 3, 2)
    assert [each.verdict.explanation for each in agent.heard] == ["this is not the second lamp"] * 2
    assert critic.checked == 3


def test_without_a_critic_the_error_is_made(tmp_path: Path) -> None:
    assert not run(tmp_path, Told(WRONG, RIGHT), Nothing()).success


def test_when_nothing_passes_the_likeliest_is_done(tmp_path: Path) -> None:
    result = run(tmp_path, Told(MISS, MISS, MISS, RIGHT), Knows(), Limits(revisions=2))
    assert result.success
    assert result.steps == 2


def test_what_was_doubted_and_done_is_no_expected_change(tmp_path: Path) -> None:
    run(tmp_path, Told(WRONG), Knows(), Limits(revisions=0))
    (done,) = (event for event in read_events(tmp_path) if event["event"] == "dispatched")
    assert done["effect"] == "other"
    assert "this is not the second lamp" in done["note"]


def test_what_cannot_be_undone_is_for_a_person(tmp_path: Path) -> None:
    nobody = run(tmp_path / "a", Told(RIGHT), Knows(irreversible=True))
    assert (nobody.success, nobody.steps, nobody.asked) == (False, 0, 1)
    assert "nobody is there" in nobody.reason
    allowed = run(tmp_path / "b", Told(RIGHT), Knows(irreversible=True), person=lambda step, verdict: True)
    assert allowed.success
    refused = run(tmp_path / "c", Told(RIGHT), Knows(irreversible=True), person=lambda step, verdict: False)
    assert refused.steps == 0  # the least bad is not done either
    again = run(tmp_path / "d", Told(RIGHT, WRONG, RIGHT), Knows(irreversible=True), insist=True)
    assert (again.success, again.steps, again.proposals) == (True, 1, 3)  # who insists decides


def test_malformed_actions_are_objections_not_crashes(tmp_path: Path) -> None:
    agent = Told("click(500, 20)", "key('nonsense')", RIGHT)
    assert run(tmp_path, agent, Knows()).success
    assert [each.verdict.error for each in agent.heard] == [ErrorClass.MALFORMED] * 2
    events = [event for event in read_events(tmp_path) if event["event"] == "proposed"]
    assert [event["verdict"]["error"] for event in events] == ["malformed_action", "malformed_action", None]
    assert "not on the screen" in events[0]["verdict"]["explanation"]
    hopeless = run(tmp_path / "b", Told(*["click()"] * 20), Nothing(), Limits(revisions=0))
    assert "nothing that can be carried out" in hopeless.reason


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (Limits(steps=2), "all 2 steps"),
        (Limits(checks=2), "all 2 checks"),
        (Limits(seconds=0), "all 0 seconds"),
    ],
)
def test_budgets_hold(tmp_path: Path, limits: Limits, reason: str) -> None:
    lamps = Lamps()
    result = run(tmp_path, Told(*[MISS] * 9), Nothing(), limits, lamps=lamps)
    assert reason in result.reason
    assert len(lamps.done) <= 2
    assert result.proposals <= 2


def test_a_repeat_of_no_effect_is_rejected_by_the_simple_rule(tmp_path: Path) -> None:
    result = run(tmp_path, Told(MISS, MISS, RIGHT), Unchanged())
    assert (result.success, result.revised, result.steps) == (True, 1, 2)


def test_an_episode_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    class PulledPlugError(Exception):
        pass

    class Breaks(Told):
        def propose(self, *args: object, **more: object) -> Step:
            if not self.calls:
                raise PulledPlugError
            return super().propose(*args, **more)  # type: ignore[arg-type]

    with pytest.raises(PulledPlugError):
        run(tmp_path, Breaks(MISS, "click(6, 30)"), Nothing())
    with (tmp_path / "events.jsonl").open("a") as file:
        file.write('{"event": "dispatched", "step": {"act')  # the kill came in the middle of a line
    lamps = Lamps()
    result = run(tmp_path, Told(RIGHT), Nothing(), lamps=lamps)
    assert result.success
    assert [action.call for action in lamps.done] == [MISS, "click(6, 30)", RIGHT]  # the first two were done again
    assert [event["event"] for event in read_events(tmp_path)].count("dispatched") == 3
    again = run(tmp_path, Told(), Nothing(), lamps=lamps)
    assert again == result
    assert len(lamps.done) == 3  # a finished one is not run again


def test_an_episode_does_not_go_on_with_another_share_of_bad_steps(tmp_path: Path) -> None:
    asked = [build("run").parse_args(["run", "--env", "x:y", "--risk", risk]) for risk in ("0.1", "0.2")]
    first, other = (_configuration(each, 0) for each in asked)
    Episode(tmp_path, first).close()
    with pytest.raises(PresageError, match=r"has risk 0\.1, not 0\.2"):
        Episode(tmp_path, other)


def test_a_folder_is_for_one_configuration_and_one_process(tmp_path: Path) -> None:
    run(tmp_path, Told(RIGHT), Nothing())
    with pytest.raises(PresageError, match="has critic 'Nothing', not 'Knows'"):
        run(tmp_path, Told(RIGHT), Knows())
    with Episode(tmp_path, {"critic": "Nothing"}), pytest.raises(PresageError, match="is working on"):
        Episode(tmp_path, {"critic": "Nothing"})
    (tmp_path / "events.jsonl").write_text("not an event\n")
    with pytest.raises(PresageError, match="is damaged"):
        Episode(tmp_path, {"critic": "Nothing"})


def test_the_history_of_an_episode_has_its_screens(tmp_path: Path) -> None:
    run(tmp_path, Told(MISS, RIGHT), Nothing())
    dispatched = [event for event in read_events(tmp_path) if event["event"] == "dispatched"]
    first, second = history_of(tmp_path, dispatched)
    assert (first.effect, second.effect) == (Effect.NOTHING, Effect.EXPECTED)
    assert first.after == second.before
    assert second.after != second.before
    assert len(list((tmp_path / "screens").iterdir())) == 2  # each screen once


def test_the_page_shows_frames_and_verdicts_and_loads_nothing(tmp_path: Path) -> None:
    run(tmp_path, Told(WRONG, RIGHT), Knows())
    text = write_page(tmp_path).read_text()
    assert text.count("data:image/png;base64,") == 3
    assert "this is not the second lamp" in text
    assert "http" not in text.replace("http-equiv", "")
    events = read_events(tmp_path)
    events[0]["goal"] = "<script>alert(1)</script>"
    (tmp_path / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    assert "<script>" not in write_page(tmp_path).read_text()


def test_choices_are_words() -> None:
    assert [str(choice) for choice in Choice] == ["trust", "revise", "ask"]
