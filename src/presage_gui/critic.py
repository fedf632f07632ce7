"""The `Critic` base class and its `Verdict`: how likely a proposed step is right, before it is carried out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from presage import Forecast
from presage_gui.history import History
from presage_gui.reading import Reader
from presage_gui.screen import Screen
from presage_gui.step import Step


class ErrorClass(StrEnum):
    """The twelve classes of errors that a step can have."""

    GROUNDING = "grounding"
    PREREQUISITE = "missing_prerequisite"
    MEANING = "wrong_meaning"
    ENDING = "wrong_ending"
    CONSTRAINT = "neglected_constraint"
    MALFORMED = "malformed_action"
    OBSERVATION = "neglected_observation"
    DETOUR = "detour"
    PARAMETER = "wrong_parameter"
    HALLUCINATED = "hallucinated_element"
    TIMING = "timing"
    DISAGREEMENT = "intent_and_action_disagree"

    @property
    def words(self) -> str:
        return _WORDS[self]


_WORDS = {
    ErrorClass.GROUNDING: "the place misses the element that is meant",
    ErrorClass.PREREQUISITE: "something has to be done first, such as giving a field the focus",
    ErrorClass.MEANING: "the element is not the one that the goal asks for",
    ErrorClass.ENDING: "the task is ended too early, or not as it should be",
    ErrorClass.CONSTRAINT: "a condition of the goal is left out",
    ErrorClass.MALFORMED: "the action cannot be carried out as it is written",
    ErrorClass.OBSERVATION: "the screen shows that the last steps did something else than is assumed",
    ErrorClass.DETOUR: "it leads away from the goal, or repeats what is done",
    ErrorClass.PARAMETER: "a scroll or a drag goes the wrong way or too far",
    ErrorClass.HALLUCINATED: "what is meant is not on the screen",
    ErrorClass.TIMING: "the screen is not ready for it yet",
    ErrorClass.DISAGREEMENT: "the action is not what its intent says",
}


@dataclass(frozen=True)
class Verdict:
    """A critic's judgement of one step."""

    probability: float
    """The probability that the step does what its intent says and brings the goal nearer."""
    error: ErrorClass | None = None
    """The likeliest error, or None if no error is suspected."""
    explanation: str = ""
    """What is wrong, and the evidence for it. It never contains the solution."""
    expected: str = ""
    """What the critic predicts will happen."""
    fix: Step | None = None
    """A step that the critic proposes instead, kept apart from the explanation. None if the critic has none."""
    abstains: bool = False
    """The critic cannot judge this step. Its probability then means nothing."""
    irreversible: bool = False
    """The step pays, sends, deletes or submits. Gates are stricter with such steps."""
    failed: bool = False
    """The critic gave no usable answer. A person then decides, and the probability is ignored."""
    evidence: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0 <= self.probability <= 1:
            raise ValueError(f"a probability lies in [0, 1], not {self.probability}")

    @property
    def forecast(self) -> Forecast:
        """The verdict for presage's policies: the step fails with `p_fail`; if it works, its value is from 0 to 1."""
        return Forecast((0.0, 1.0), (0.0, 1.0), 1 - self.probability)

    def to_json(self) -> dict[str, Any]:
        return {
            "probability": self.probability, "error": self.error and str(self.error), "explanation": self.explanation,
            "expected": self.expected, "fix": self.fix and self.fix.to_json(), "abstains": self.abstains,
            "irreversible": self.irreversible, "failed": self.failed, "evidence": dict(self.evidence),
        }  # fmt: skip

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Verdict:
        error, fix = kept.get("error"), kept.get("fix")
        return cls(
            kept["probability"], ErrorClass(error) if error else None, kept.get("explanation", ""),
            kept.get("expected", ""), Step.from_json(fix) if fix else None, kept.get("abstains", False),
            kept.get("irreversible", False), kept.get("failed", False), kept.get("evidence", {}),
        )  # fmt: skip


class Critic(ABC):
    """Judges steps. Its name on the command line is its entry point's name in the group `presage.critics`."""

    @abstractmethod
    def check(self, goal: str, history: History, screen: Screen, step: Step) -> Verdict:
        """Return the verdict on a step that is not carried out yet. A critic sees pixels, never the element tree."""

    def observe(self, verdict: Verdict, good: bool) -> None:  # noqa: B027  most critics do not learn
        """Learn whether a step that the critic judged was good."""

    @property
    def reader(self) -> Reader | None:
        """The critic's text reader, or None. Histories use it to report clicks that hit another element than meant."""
        return None

    def close(self) -> None:  # noqa: B027  most critics hold nothing
        """Release the critic's resources."""
