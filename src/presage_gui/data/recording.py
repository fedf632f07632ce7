"""Record states: play tasks with an oracle, make mistakes on purpose, and write states with labelled steps."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from presage.core.files import write_whole
from presage_gui.action import Action, ActionError, Kind
from presage_gui.critic import ErrorClass
from presage_gui.data.injection import INJECTORS, Proposed, Situation, good
from presage_gui.data.splits import Split, where
from presage_gui.environments.miniwob import SIZE, MiniWob
from presage_gui.oracles.oracle import Oracle
from presage_gui.oracles.right import Right
from presage_gui.screen import Screen

LONGEST = 14
"""The maximum number of states of an episode."""
MISTAKES = (
    ErrorClass.GROUNDING,
    ErrorClass.MEANING,
    ErrorClass.DETOUR,
    ErrorClass.DISAGREEMENT,
    ErrorClass.PREREQUISITE,
)
"""The errors that are carried out on purpose, so that histories contain wrong steps."""
MEANT = (ErrorClass.GROUNDING, ErrorClass.PARAMETER, ErrorClass.MALFORMED)
"""The error classes that keep the right intent."""
ASTRAY = (ErrorClass.GROUNDING, ErrorClass.DISAGREEMENT, ErrorClass.PREREQUISITE)
"""Mistakes whose effect differs from the step's intent. The other mistakes do what their intent says."""
BUSY: dict[Split, tuple[str, ...]] = {
    "train": ("loading", "ring"),
    "validation": ("blank",),
    "test": ("wait", "bars"),
}
"""The looks of a busy page. Each split has its own."""


class Recorder:
    """Writes the states of tasks into a folder, as SPLIT/TASK.jsonl, and all screens as screens/DIGEST.png."""

    def __init__(self, folder: Path, environment: MiniWob) -> None:
        self.folder = folder
        self.environment = environment
        (folder / "screens").mkdir(parents=True, exist_ok=True)

    def record(self, task: str, seeds: range, mistakes: float = 0.3) -> tuple[int, int, int]:
        """Record one episode per seed. Return the numbers of episodes, successes and states.

        `mistakes`: the share of mistaken steps. Only episodes with an odd seed have mistakes."""
        split, _ = where(task)
        (self.folder / split).mkdir(exist_ok=True)
        self.environment.switch(task)
        states, successes = [], 0
        for seed in seeds:
            episode = _Recorded(self, task, seed, mistakes if seed % 2 else 0.0)
            states += list(episode.states())
            successes += episode.success
        write_whole(self.folder / split / f"{task}.jsonl", "".join(json.dumps(state) + "\n" for state in states))
        return len(seeds), successes, len(states)

    def knows(self, task: str) -> bool:
        """Whether there is an oracle for a task."""
        self.environment.switch(task)
        self.environment.reset(0)
        oracle = Oracle(self.environment)
        oracle.ready()
        return oracle.known


class _Recorded:
    """One episode while it is being recorded."""

    def __init__(self, recorder: Recorder, task: str, seed: int, mistakes: float) -> None:
        self.recorder, self.environment = recorder, recorder.environment
        self.task, self.seed, self.mistakes = task, seed, mistakes
        self.rng = random.Random(f"{task}:{seed}")
        self.oracle = Oracle(self.environment, self.rng)
        self.history: list[dict[str, Any]] = []
        self.done: list[Right] = []
        self.missed: Right | None = None
        self.missed_step: Proposed | None = None
        self.success = False

    def states(self) -> Iterator[dict[str, Any]]:
        self.goal = self.environment.reset(self.seed)
        self.oracle.ready()
        screen = self.environment.screen()
        for _ in range(LONGEST):
            outcome = self.environment.outcome()
            if outcome.over:
                self.success = outcome.success
                if outcome.success:
                    yield self._state(screen, [_FINISH], "over")
                return
            right = self.oracle.right()
            if not right:
                return
            yield self._state(screen, right, "task")
            if self.rng.random() < 0.15:
                yield self._busy(right[0])
            screen = self._act(screen, right)

    def _situation(self, right: list[Right], phase: str, covered: Right | None) -> Situation:
        return Situation(
            self.goal, right, self.oracle.elements(), SIZE, self.rng, tuple(self.done),
            self.missed, self.missed_step, covered, phase == "over",
        )  # fmt: skip

    def _state(self, screen: Screen, right: list[Right], phase: str, covered: Right | None = None) -> dict[str, Any]:
        split, family = where(self.task)
        situation = self._situation(right, phase, covered)
        return {
            "task": self.task, "family": family, "split": split, "seed": self.seed, "phase": phase, "goal": self.goal,
            "screen": screen.keep(self.recorder.folder), "history": list(self.history),
            "right": [each.to_json() for each in right],
            "proposals": [self._told(each, right) for each in self._proposals(situation)],
        }  # fmt: skip

    def _proposals(self, s: Situation) -> list[Proposed]:
        wanted = [good(s, each) for each in s.right[:3]] + [good(s, s.right[0])]
        again = self.oracle.right() if not (s.over or s.covered) else []  # the same step at another random position
        wanted += [good(s, again[0])] if again else []
        wanted += [made for inject in INJECTORS.values() if (made := inject(s)) and not self._by_chance(made, s)]
        unlike = {(str(each.action), each.intent): each for each in wanted}
        return list(unlike.values())

    def _by_chance(self, made: Proposed, s: Situation) -> bool:
        """Whether a step with an injected error is right by chance. Such a step would teach nothing."""
        return made.error not in MEANT and self._is_right(made, list(s.right))

    def _told(self, proposed: Proposed, right: list[Right]) -> dict[str, Any]:
        fine = self._is_right(proposed, right)
        action = proposed.action if isinstance(proposed.action, str) else proposed.action.to_json()
        error = None if fine else str(proposed.error or ErrorClass.MEANING)
        return {"action": action, "intent": proposed.intent, "good": fine, "error": error}

    def _is_right(self, proposed: Proposed, right: list[Right]) -> bool:
        if isinstance(proposed.action, str):
            return False
        try:
            action = proposed.action.on(SIZE)
        except ActionError:
            return False
        return self.oracle.allows(right, action)

    def _busy(self, covered: Right) -> dict[str, Any]:
        """Return the same state with a busy page, where only waiting is right."""
        split, _ = where(self.task)
        page = self.environment.page
        page.evaluate("kind => presage.busy(kind)", self.rng.choice(BUSY[split]))
        state = self._state(self.environment.screen(), [_WAIT], "busy", covered)
        page.evaluate("presage.ready()")
        return state

    def _act(self, before: Screen, right: list[Right]) -> Screen:
        """Carry out a right step or, at random, a wrong one. Return the screen after it."""
        situation = self._situation(right, "task", None)
        step, wrong = good(situation, right[0]), False
        if self.rng.random() < self.mistakes:
            made = INJECTORS[self.rng.choice(MISTAKES)](situation)
            if made and isinstance(made.action, Action) and not self._is_right(made, right):
                step, wrong = made, True
        assert isinstance(step.action, Action)
        self.environment.do(step.action)
        after = self.environment.screen()
        astray = wrong and step.error in ASTRAY
        changed = "nothing" if after == before else "other" if astray else "expected"
        self.history.append({
            "action": step.action.to_json(), "intent": step.intent, "before": before.keep(self.recorder.folder),
            "after": after.keep(self.recorder.folder), "good": not wrong, "effect": changed,
            "error": str(step.error) if wrong else None,
        })  # fmt: skip
        if wrong:
            self.missed, self.missed_step = right[0], step
        else:
            self.done.append(right[0])
            self.missed = self.missed_step = None
        return after


_WAIT = Right(Action(Kind.WAIT, seconds=1.0), "", "")
_FINISH = Right(Action(Kind.TERMINATE), "", "")
