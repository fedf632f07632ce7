"""`blend`: the members that were right are believed more; failures and abstentions have no say."""

from __future__ import annotations

import numpy as np
import pytest

from presage import PresageError
from presage_gui import Action, Critic, ErrorClass, History, Screen, Step, Verdict
from presage_gui.critics.blend import Blend

SCREEN = Screen(np.zeros((10, 10, 3), np.uint8))
STEP = Step(Action.parse("click(4, 4)"))


class Says(Critic):
    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict

    def check(self, goal: str, history: History, screen: Screen, step: Step) -> Verdict:
        return self.verdict


def blend(*verdicts: Verdict) -> Blend:
    return Blend({f"m{number}": Says(verdict) for number, verdict in enumerate(verdicts)})


def check(critic: Critic) -> Verdict:
    return critic.check("goal", History(), SCREEN, STEP)


def test_the_pool_lies_between_its_members() -> None:
    bad = Verdict(0.2, ErrorClass.GROUNDING, "it misses")
    assert 0.2 < check(blend(bad, Verdict(0.9))).probability < 0.9


def test_who_was_right_is_believed() -> None:
    critic = blend(Verdict(0.9), Verdict(0.1, ErrorClass.MEANING))
    for _ in range(20):
        critic.observe(check(critic), good=True)
    assert critic.weights["m0"] > 0.9
    assert check(critic).probability > 0.8


def test_who_abstains_or_fails_has_no_say() -> None:
    assert check(blend(Verdict(0.9), Verdict(0.0, abstains=True))).probability == pytest.approx(0.9)
    assert check(blend(Verdict(0.9), Verdict(0.5, failed=True))).probability == pytest.approx(0.9)


def test_a_failure_goes_to_a_person_where_nobody_can_judge_or_nothing_can_be_undone() -> None:
    assert check(blend(Verdict(0.5, failed=True), Verdict(0.5, abstains=True))).failed
    assert check(blend(Verdict(0.9, irreversible=True), Verdict(0.5, failed=True))).failed
    assert not check(blend(Verdict(0.9), Verdict(0.5, failed=True))).failed


def test_a_blend_of_one_is_refused() -> None:
    with pytest.raises(PresageError, match="two or more"):
        blend(Verdict(0.5))
