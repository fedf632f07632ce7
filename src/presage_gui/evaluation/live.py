"""The loop with a scripted agent that spoils some of its steps: with no critic, the critic, an ideal, a random one."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from presage.core.scoring import bootstrap
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


class Ideal(Critic):
    """Knows what the oracle of the environment knows: the most that rejecting alone can gain."""

    def __init__(self, environment: MiniWob) -> None:
        self._guide = environment.guide()

    def check(self, goal: str, history: History, screen: Screen, step: Step) -> Verdict:
        right = self._guide.right()
        fine = self._guide.allows(right, step.action) if right else True
        return Verdict(1.0) if fine else Verdict(0.0, ErrorClass.MEANING, "the oracle says so")


def compare(
    tasks: Sequence[str], episodes: int, errors: float, critics: Mapping[str, Critic], gate: Gate, folder: Path,
    revisions: int = 2, fixes: bool = True,
) -> dict[str, Any]:  # fmt: skip
    """The share of episodes that succeed, for each critic, on the same seeds; gains over no critic, with intervals over
    tasks. What the gate would ask a person about is sent back, for nobody is there."""
    environment = MiniWob(tasks[0])
    with environment:
        all_critics: dict[str, tuple[Critic, Gate]] = {
            "none": (Nothing(), Pass()),
            **{name: (critic, gate) for name, critic in critics.items()},
            "unchanged": (Unchanged(), Threshold()),
            "random": (Chance(), Threshold()),
            "ideal": (Ideal(environment), Threshold()),
        }
        agent = Scripted(environment, errors)
        success: dict[str, list[float]] = {name: [] for name in all_critics}
        seconds: dict[str, float] = dict.fromkeys(all_critics, 0.0)
        names: list[str] = []
        for task in tasks:
            environment.switch(task)
            for seed in range(1000, 1000 + episodes):
                names.append(task)
                for name, (critic, its_gate) in all_critics.items():
                    began = time.process_time()
                    with Episode(folder / name / f"{task}-{seed}", {}) as episode:
                        loop = Loop(
                            environment, agent, critic, its_gate, episode, Limits(steps=20, revisions=revisions),
                            lambda step, verdict: False, fixes,
                        )  # fmt: skip
                        success[name].append(float(loop.run(seed).success))
                    seconds[name] += time.process_time() - began
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
