"""The `pixels` critic: reads the screen, computes a probability with learned weights, and explains it.

It needs no model download. Text on the screen is only compared with the goal, the intent and the typed text. It is
never followed as an instruction.
"""

from __future__ import annotations

from presage.core.recalibration import Online
from presage_gui.action import POINTING, ActionError, Kind
from presage_gui.critic import Critic, ErrorClass, Verdict
from presage_gui.critics.evidence.all import evidence
from presage_gui.critics.evidence.situation import Situation
from presage_gui.critics.fixes import candidates
from presage_gui.critics.reasons import reason
from presage_gui.critics.weights import Weights, shipped
from presage_gui.critics.wording import is_committing
from presage_gui.history import History
from presage_gui.screen import Screen
from presage_gui.sight.matching import likeness, tokens
from presage_gui.sight.scene import Viewer
from presage_gui.sight.text import Reader
from presage_gui.step import Step

_DOUBTED = 0.5
"""Below this probability the verdict names an error, and the critic looks for a fix."""
_FIX = 0.7
"""The least probability of a fix, both with its intent and as a bare step."""
_MALFORMED = 0.005
_READ = 0.85
"""A label with at least this likeness to the name in the intent counts as the named element."""
_PLAIN = 12
"""A surface whose brightness has at most this standard deviation is plain: it shows no icon or picture."""
_NAME = 2
"""An unquoted name has at most this many words. A longer text is a description."""


class Pixels(Critic):
    """Judges steps from pixels. `fixes`: whether the critic offers a step of its own; `online`: whether it learns from
    outcomes; `weights`: those for steps with an intent and for bare steps, instead of the shipped ones."""

    def __init__(
        self, fixes: bool = True, online: bool = True, weights: tuple[Weights, Weights] | None = None,
        reader: Reader | None = None,
    ) -> None:  # fmt: skip
        self._fixes, self._learns = fixes, online
        self._weights = weights
        self._reader = reader or Reader()
        self._viewer = Viewer(self._reader)
        self._online = Online()

    @property
    def reader(self) -> Reader:
        return self._reader

    def check(self, goal: str, history: History, screen: Screen, step: Step) -> Verdict:
        try:
            situation = Situation.of(self._viewer, goal, history, screen, step)
        except ActionError as error:
            return Verdict(_MALFORMED, ErrorClass.MALFORMED, str(error))
        seen = evidence(situation)
        raw = self._weigh(bool(step.intent), [seen])[0]
        probability = self._online(raw)
        verdict = Verdict(
            probability,
            expected=_expected(situation),
            abstains=_cannot_judge(situation, seen),
            irreversible=_is_irreversible(situation),
            evidence=seen | {"raw": raw},
        )
        if probability >= _DOUBTED:
            return verdict
        why = reason(situation, seen)
        fix = self._fix(goal, history, screen, situation) if self._fixes and step.intent else None
        return Verdict(
            probability, why.error, why.words, verdict.expected, fix, verdict.abstains, verdict.irreversible,
            evidence=verdict.evidence,
        )  # fmt: skip

    def observe(self, verdict: Verdict, good: bool) -> None:
        if self._learns and "raw" in verdict.evidence:
            self._online.observe(verdict.evidence["raw"], good)

    def _weigh(self, with_intent: bool, rows: list[dict[str, float]]) -> list[float]:
        weights = self._weights[0 if with_intent else 1] if self._weights else shipped(with_intent)
        return [float(each) for each in weights(rows)]

    def _fix(self, goal: str, history: History, screen: Screen, situation: Situation) -> Step | None:
        """Return the candidate step that is likeliest with its intent, or None if none reaches `_FIX`."""
        steps = [step for step in candidates(situation) if step.action != situation.action]
        if not steps:
            return None
        pairs = [(step, step.bare) for step in steps]
        seen = [[evidence(Situation.of(self._viewer, goal, history, screen, each)) for each in pair] for pair in pairs]
        meant = self._weigh(True, [with_intent for with_intent, _ in seen])
        wanted = self._weigh(False, [bare for _, bare in seen])
        best = max(range(len(steps)), key=lambda i: meant[i])
        return steps[best] if min(meant[best], wanted[best]) >= _FIX else None


def _cannot_judge(s: Situation, seen: dict[str, float]) -> bool:
    """Whether nothing connects the click's position with the intent.

    This is so if the meant name is nowhere on the screen, and the position is an icon or a picture, or the intent
    only describes the element without naming it, or the intent only repeats the goal."""
    if s.action.kind not in POINTING or not s.meant or _speaks_for_itself(seen):
        return False
    if max(seen.get("i_best", 0.0), seen.get("i_partly", 0.0)) >= _READ:
        return False
    pictured = not seen.get("is_named", 0.0) and seen.get("spread", 0.0) > _PLAIN
    described = not s.intent.quoted and len(tokens(s.meant)) > _NAME
    return pictured or described or likeness(s.goal.text, s.intent.text) >= _READ


def _speaks_for_itself(seen: dict[str, float]) -> bool:
    """Whether there is evidence that needs no label: a step repeated without effect, or a colour in the intent."""
    return bool(seen.get("h_same_fruitless") or seen.get("p_same_fruitless")) or "i_colour" in seen


def _is_irreversible(s: Situation) -> bool:
    at = s.action.at
    if s.action.kind in (Kind.CLICK, Kind.DOUBLE) and at is not None:
        element = s.scene.element_at(at.x, at.y)
        if element is not None and element.name:
            return is_committing(element.name)
        return any(is_committing(phrase) for phrase in (s.meant,) if phrase)
    return False


def _expected(s: Situation) -> str:
    """Return what the step will probably do, judged from the screen."""
    at = s.action.at
    element = s.scene.element_at(at.x, at.y) if at else None
    if s.action.kind is Kind.TYPE:
        return "the text appears in the field with the focus" if s.focused else "the text may go nowhere"
    if element is None:
        return "nothing is likely to change" if s.action.kind in POINTING else ""
    named = f" that reads {element.name[:60]!r}" if element.name else ""
    return f"it acts on the {element.kind}{named}"
