"""The guard's promise: of the bad steps, at most a share passes; of those that cannot be undone, far fewer."""

from __future__ import annotations

import random

import pytest

from presage import PresageError
from presage_gui import Verdict
from presage_gui.episode import Choice
from presage_gui.guarding import Guard


def steps(rng: random.Random, count: int) -> list[tuple[float, bool]]:
    """Verdicts that are right more often than not, with outcomes as likely as they say."""
    said = [rng.betavariate(0.6, 0.6) for _ in range(count)]
    return [(p, rng.random() < p) for p in said]


def passed(guard: Guard, pairs: list[tuple[float, bool]], irreversible: bool = False) -> tuple[float, float]:
    """The shares of the bad and of the good steps that pass."""
    passes: dict[bool, list[bool]] = {True: [], False: []}
    for probability, good in pairs:
        choice = guard.decide(Verdict(probability, irreversible=irreversible)).choice
        passes[good].append(choice is Choice.TRUST)
    return sum(passes[False]) / len(passes[False]), sum(passes[True]) / len(passes[True])


@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_at_most_the_share_of_bad_steps_passes(alpha: float) -> None:
    rng = random.Random(0)
    guard = Guard(alpha, calibration=steps(rng, 600))
    bad, good = passed(guard, steps(rng, 1500))
    assert bad <= alpha + 0.03
    assert good > bad


def test_what_cannot_be_undone_is_judged_more_strictly() -> None:
    rng = random.Random(1)
    guard = Guard(0.2, calibration=steps(rng, 600))
    later = steps(rng, 1000)
    assert passed(guard, later, irreversible=True)[0] < passed(guard, later)[0]
    assert guard.decide(Verdict(0.1, irreversible=True)).choice is Choice.ASK


def test_without_outcomes_nothing_is_trusted() -> None:
    guard = Guard(0.1, calibration=[])
    assert guard.decide(Verdict(0.99)).choice is Choice.ASK
    assert guard.decide(Verdict(0.1)).choice is Choice.REVISE


def test_failures_and_abstentions() -> None:
    guard = Guard(0.1, calibration=[])
    assert guard.decide(Verdict(0.99, failed=True)).choice is Choice.ASK
    assert guard.decide(Verdict(0.99, abstains=True)).choice is Choice.TRUST
    assert guard.decide(Verdict(0.99, abstains=True, irreversible=True)).choice is Choice.ASK


def test_a_share_that_is_none_is_refused() -> None:
    with pytest.raises(PresageError, match="between 0 and 1"):
        Guard(1.0)
