"""Evaluate critics in the agent loop: a scripted agent makes errors; baselines and an ideal critic are compared."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from presage.core.scoring import bootstrap
from presage_gui.agent import Agent
from presage_gui.agents.scripted import Scripted
from presage_gui.baselines import Chance, Nothing, Unchanged
from presage_gui.critic import Critic, ErrorClass, Verdict
from presage_gui.deciding import Gate, Pass, Threshold
from presage_gui.environments.miniwob import MiniWob
from presage_gui.episode import Episode
from presage_gui.history import History
from presage_gui.loop import Limits, Loop
from presage_gui.screen import Screen
from presage_gui.step import Step

FIRST_SEED = 1000
"""The first seed of live episodes. Recorded states have only smaller seeds."""


class Ideal(Critic):
    """Judges steps by the environment's oracle: the upper bound of what rejecting steps without a fix can gain."""

    def __init__(self, environment: MiniWob) -> None:
        self._guide = environment.guide()

    def check(self, goal: str, history: History, screen: Screen, step: Step) -> Verdict:
        right = self._guide.right()
        fine = self._guide.allows(right, step.action) if right else True
        return Verdict(1.0) if fine else Verdict(0.0, ErrorClass.MEANING, "the oracle says so")


@dataclass(frozen=True)
class Played:
    """The result of one episode."""

    success: bool
    steps: int
    proposals: int
    seconds: float
    """CPU seconds of this process, without the browser."""


def players(environment: MiniWob, critics: Mapping[str, Critic], gate: Gate) -> dict[str, tuple[Critic, Gate]]:
    """Return the given critics with their gate, and the baselines and the ideal critic with theirs."""
    return {
        "none": (Nothing(), Pass()),
        **{name: (critic, gate) for name, critic in critics.items()},
        "unchanged": (Unchanged(), Threshold()),
        "random": (Chance(), Threshold()),
        "ideal": (Ideal(environment), Threshold()),
    }


def play(
    environment: MiniWob, agent: Agent, critic: Critic, gate: Gate, seed: int, folder: Path,
    revisions: int = 2, fixes: bool = True,
) -> Played:  # fmt: skip
    """Run one episode with `insist`: a step that needs a person passes if the agent proposes it again."""
    began = time.process_time()
    with Episode(folder, {}) as episode:
        limits = Limits(steps=20, revisions=revisions)
        result = Loop(environment, agent, critic, gate, episode, limits, fixes=fixes, insist=True).run(seed)
    return Played(result.success, result.steps, result.proposals, time.process_time() - began)


def compare(
    tasks: Sequence[str], episodes: int, errors: float, critics: Mapping[str, Critic], gate: Gate, folder: Path,
    revisions: int = 2, fixes: bool = True,
) -> dict[str, Any]:  # fmt: skip
    """Run all critics on the same tasks and seeds. Return each critic's success rate and its gain over no critic, with
    a bootstrap interval over tasks. `errors`: the share of steps that the agent spoils."""
    environment = MiniWob(tasks[0])
    with environment:
        all_critics = players(environment, critics, gate)
        agent = Scripted(environment, errors)
        success: dict[str, list[float]] = {name: [] for name in all_critics}
        seconds: dict[str, float] = dict.fromkeys(all_critics, 0.0)
        names: list[str] = []
        for task in tasks:
            environment.switch(task)
            for seed in range(FIRST_SEED, FIRST_SEED + episodes):
                names.append(task)
                for name, (critic, its_gate) in all_critics.items():
                    place = folder / name / f"{task}-{seed}"
                    played = play(environment, agent, critic, its_gate, seed, place, revisions, fixes)
                    success[name].append(float(played.success))
                    seconds[name] += played.seconds
    return _summary(success, seconds, names)


def _summary(
    success: Mapping[str, Sequence[float]], seconds: Mapping[str, float], tasks: Sequence[str]
) -> dict[str, Any]:
    base = np.array(success["none"])
    found: dict[str, Any] = {"tasks": len(set(tasks)), "episodes": len(tasks)}
    for name, won in success.items():
        gain = np.array(won) - base
        interval = bootstrap(lambda rows, g=gain: float(g[rows].mean()), tasks)  # type: ignore[misc]
        found[name] = {
            "success": round(float(np.mean(won)), 4),
            "gain": [round(float(part), 4) for part in interval],
            "cpu_seconds_per_episode": round(seconds[name] / len(won), 3),
        }
    return found
