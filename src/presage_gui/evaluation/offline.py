"""Evaluate a critic on recorded states: check every proposed step, and compare the verdict with the label."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from presage import PresageError
from presage.core.scoring import auroc
from presage_gui.action import ActionError
from presage_gui.critic import Critic, ErrorClass
from presage_gui.data.dataset import State
from presage_gui.evaluation.scores import alarms, caught, table, threshold_at


@dataclass(frozen=True)
class Judged:
    """One verdict, with the label of the step."""

    task: str
    family: str
    good: bool
    error: ErrorClass | None
    probability: float
    named: ErrorClass | None
    abstains: bool
    fix_is_right: bool | None
    """None if no fix was offered."""
    seconds: float
    """CPU seconds of the check."""


def judge(critic: Critic, states: Iterable[State], with_intent: bool = True) -> list[Judged]:
    """Judge each proposal of each state. A malformed action gets probability 0 without asking the critic."""
    judged = []
    for state in states:
        history, screen = state.history, state.screen
        for proposal in state.proposals:
            began = time.process_time()
            step = proposal.step
            truth = state.task, state.family, proposal.good, proposal.error
            if step is None:
                judged.append(Judged(*truth, 0.0, ErrorClass.MALFORMED, False, None, 0.0))
                continue
            try:
                step.action.on(screen.size)
            except ActionError:
                judged.append(Judged(*truth, 0.0, ErrorClass.MALFORMED, False, None, 0.0))
                continue
            verdict = critic.check(state.goal, history, screen, step if with_intent else step.bare)
            took = time.process_time() - began
            fix = None if verdict.fix is None else state.allows(verdict.fix.action)
            judged.append(Judged(*truth, verdict.probability, verdict.error, verdict.abstains, fix, took))
    if not judged:
        raise PresageError("there are no recorded states to judge; 'presage-gui record' makes them")
    return judged


def report(judged: list[Judged]) -> dict[str, Any]:
    """Return all figures as JSON data."""
    probability = np.array([each.probability for each in judged])
    good = np.array([each.good for each in judged])
    at_five = threshold_at(probability, good)
    offered = [each for each in judged if each.fix_is_right is not None and each.probability < 0.5]
    figures = table(probability, good, [each.task for each in judged])
    return {
        "steps": len(judged),
        "tasks": len({each.task for each in judged}),
        "families": len({each.family for each in judged}),
        "bad": int((~good).sum()),
        **{name: [_round(part) for part in interval] for name, interval in figures.items()},
        "threshold_at_5": _round(at_five),
        "classes": {str(each): _of_class(judged, each, at_five) for each in ErrorClass},
        "families_auroc": _families(judged),
        "abstains": _round(float(np.mean([each.abstains for each in judged]))),
        "fixes": {
            "offered": len(offered),
            "on_bad_steps": sum(not each.good for each in offered),
            "right": _round(float(np.mean([each.fix_is_right for each in offered]))) if offered else None,
        },
        "cpu_seconds": {
            "mean": _round(float(np.mean([each.seconds for each in judged]))),
            "p95": _round(float(np.quantile([each.seconds for each in judged], 0.95))),
        },
    }


def _of_class(judged: list[Judged], error: ErrorClass, at_five: float) -> dict[str, Any]:
    """Return the recall of one error class at both thresholds, and the share of doubted steps with the right class."""
    bad = [each for each in judged if each.error is error]
    if not bad:
        return {"steps": 0}
    probability, none = np.array([each.probability for each in bad]), np.zeros(len(bad), dtype=bool)
    doubted = [each for each in bad if each.named]
    return {
        "steps": len(bad),
        "recall_at_5": _round(caught(probability, none, at_five)),
        "recall_at_half": _round(caught(probability, none, 0.5)),
        "named": _round(sum(each.named is error for each in doubted) / len(doubted)) if doubted else None,
    }


def _families(judged: list[Judged]) -> dict[str, Any]:
    found = {}
    for family in sorted({each.family for each in judged}):
        own = [each for each in judged if each.family == family]
        probability, good = np.array([each.probability for each in own]), np.array([each.good for each in own])
        found[family] = [_round(auroc(probability, good)), _round(alarms(probability, good, 0.5)), len(own)]
    return found


def _round(value: float) -> float | None:
    return None if math.isnan(value) else round(float(value), 4)
