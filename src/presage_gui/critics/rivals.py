"""Rivals: what else could be done now. A step is the more doubtful, the likelier another one is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from presage_gui.action import POINTING, Action, Kind, Point
from presage_gui.critics.evidence.all import evidence
from presage_gui.critics.evidence.situation import Situation
from presage_gui.critics.wording import Wording
from presage_gui.screen import Box
from presage_gui.step import Step

_MOST = 24
"""So many elements are looked at."""
_TEXTS = 3


@dataclass(frozen=True)
class Rival:
    """A step without an intent, and where a click means the same."""

    action: Action
    area: Box | None
    evidence: dict[str, float]

    def is_same(self, action: Action) -> bool:
        """Whether a step does what this one does."""
        if action.kind is not self.action.kind:
            return False
        if self.area is not None and action.at is not None:
            return self.area.holds(action.at.x, action.at.y)
        return action == replace(self.action, seconds=action.seconds)


def rivals(s: Situation) -> list[Rival]:
    """A click on each element, what could be typed, waiting and ending."""
    steps: list[tuple[Action, Box | None]] = [(Action(Kind.TERMINATE), None), (Action(Kind.WAIT, seconds=1.0), None)]
    steps += [(Action(Kind.TYPE, text=phrase), None) for phrase in s.pending[:_TEXTS]]
    for element in sorted(s.scene.elements, key=lambda each: not each.name)[:_MOST]:
        x, y = element.area.middle
        if s.scene.element_at(x, y) is element:
            steps.append((Action(Kind.CLICK, at=Point(round(x), round(y))), element.area))
    return [Rival(action, area, evidence(_instead(s, action))) for action, area in steps]


def _instead(s: Situation, action: Action) -> Situation:
    return replace(s, step=Step(action), action=action, intent=Wording(""))


def against(action: Action, own: float, others: Sequence[Rival], chances: Sequence[float]) -> dict[str, float]:
    """How a step stands among its rivals. own: its probability without its intent; chances: theirs."""
    apart = [(rival, chance) for rival, chance in zip(others, chances, strict=True) if not rival.is_same(action)]
    clicks = [chance for rival, chance in apart if rival.action.kind in POINTING]
    texts = [chance for rival, chance in apart if rival.action.kind is Kind.TYPE]
    by_kind = {rival.action.kind: chance for rival, chance in zip(others, chances, strict=True)}
    best = max((chance for _, chance in apart), default=0.0)
    return {
        "r_own": own,
        "r_best": best,
        "r_lead": own - best,
        "r_better": float(sum(chance > own for _, chance in apart)),
        "r_click": max(clicks, default=0.0),
        "r_text": max(texts, default=0.0),
        "r_end": by_kind.get(Kind.TERMINATE, 0.0),
        "r_wait": by_kind.get(Kind.WAIT, 0.0),
        "r_likely": float(sum(chance > 0.5 for _, chance in apart)),
    }
