"""Evidence about the task's progress: what the goal names and is not done, ticked check boxes, the caret."""

from __future__ import annotations

import math
from collections.abc import Sequence

from presage_gui.action import ENDING, POINTING, Kind
from presage_gui.critics.evidence.situation import Situation
from presage_gui.critics.wording import is_finishing
from presage_gui.screen import Box
from presage_gui.sight.boxes import is_small_square
from presage_gui.sight.caret import carets
from presage_gui.sight.matching import contained, likeness, tokens
from presage_gui.sight.scene import Element

_ALIKE = 0.85
_TICKED = 0.12
"""A check box is ticked if at least this share of the pixels inside it is dark."""


def progress(s: Situation) -> dict[str, float]:
    shown = _shown(s)
    found = {**_left(s, shown), **_ticks(s)}
    if s.action.kind is Kind.TYPE:
        found |= _letters(s)
    if s.action.kind in (Kind.TYPE, Kind.KEY):
        found |= _caret(s)
    return found


def _shown(s: Situation) -> list[str]:
    """Return the text on the screen, without the lines that repeat the goal."""
    return [line.text for line in s.scene.lines if line not in s.scene.banner]


def _left(s: Situation, shown: list[str]) -> dict[str, float]:
    """Evidence about pending parts of the goal: how many are visible, and how many could be acted on now."""
    text = " ".join(shown)
    labels = [each for each in s.scene.elements if each.name and each.kind != "field"]
    seen = [phrase for phrase in s.pending if contained(phrase, text) >= _ALIKE]
    ready = [
        phrase
        for phrase in s.pending
        if any(likeness(phrase, each.name) >= _ALIKE for each in labels) and not is_finishing(phrase)
    ]
    worked = [each for each in s.past if each.had_effect]
    ends = s.action.kind in ENDING or (s.action.kind in POINTING and is_finishing(_under(s)))
    return {
        "c_seen": float(len(seen)),
        "c_ready": float(len(ready)),
        "c_unseen": float(len(s.pending) - len(seen)),
        "c_worked": float(len(worked)),
        "c_kinds": float(len({(each.action.kind, each.name) for each in worked})),
        "c_per_phrase": len(worked) / max(1, len(s.goal.phrases)),
        "c_ends": float(ends),
        "c_ends_ready": float(ends and bool(ready)),
        "c_ends_unworked": float(ends and not worked),
    }


def _under(s: Situation) -> str:
    at = s.action.at
    element = s.scene.element_at(at.x, at.y) if at else None
    return element.name if element else ""


def _ticks(s: Situation) -> dict[str, float]:
    """Evidence about check boxes: how many are ticked, wanted but not ticked, and the state of the clicked one."""
    checks = [each for each in s.scene.elements if each.kind == "check" and each.name]
    if not checks:
        return {}
    wanted = [each for each in checks if _is_wanted(s, each)]
    squares = [box for box in s.scene.boxes if is_small_square(box)]
    ticked = [each for each in checks if _is_ticked(s, each, squares)]
    at = s.action.at
    here = s.scene.element_at(at.x, at.y) if at and s.action.kind in POINTING else None
    found = {
        "x_ticked": float(len(ticked)),
        "x_wanted": float(len(wanted)),
        "x_missing": float(sum(each not in ticked for each in wanted)),
        "x_odd": float(sum(each not in wanted for each in ticked)),
    }
    if here is not None and here in checks:
        found["x_done"] = float((here in wanted) == (here in ticked))
    return found


def _is_wanted(s: Situation, check: Element) -> bool:
    name = f" {' '.join(tokens(check.name))} "
    return name in f" {' '.join(s.goal.words)} " or any(likeness(p, check.name) >= 0.9 for p in s.goal.phrases)


def _is_ticked(s: Situation, check: Element, squares: Sequence[Box]) -> bool:
    boxes = [box for box in squares if check.area.grown(1).holds(*box.middle)]
    return any(_share_inked(s, box) >= _TICKED for box in boxes)


def _share_inked(s: Situation, box: Box) -> float:
    inside = s.scene.screen.pixels[
        int(box.top) + 3 : max(int(box.bottom) - 3, int(box.top) + 4),
        int(box.left) + 3 : max(int(box.right) - 3, int(box.left) + 4),
    ]
    return float((inside.min(axis=2) < 170).mean()) if inside.size else 0.0


def _letters(s: Situation) -> dict[str, float]:
    """Evidence on whether the typed text is a variant of one in the goal: cut, extended, or in a different case."""
    text = s.action.text.strip()
    phrases = s.goal.quoted or s.goal.phrases
    exact = any(text == phrase for phrase in phrases)
    folded = [phrase for phrase in phrases if phrase.casefold() == text.casefold()]
    words = s.goal.text.split()
    return {
        "t_cut": float(not exact and any(text in phrase for phrase in phrases)),
        "t_more": float(not exact and any(phrase in text for phrase in phrases if len(phrase) > 1)),
        "t_other_case": float(not exact and bool(folded)),
        "t_whole_words": float(bool(text) and all(any(part in word for word in words) for part in text.split())),
    }


def _caret(s: Situation) -> dict[str, float]:
    seen = carets(s.scene.screen)
    clicks = [each for each in s.past if each.action.kind in POINTING and each.action.at]
    found = {"t_carets": float(len(seen)), "t_caret_or_ring": float(bool(seen) or s.focused is not None)}
    if seen and clicks:
        at = clicks[-1].action.at
        assert at
        found["t_caret_away"] = min(abs(box.middle[1] - at.on(s.scene.screen.size).y) for box in seen)
    if seen and s.intent.text:
        fields = [each for each in s.scene.elements if each.name and contained(each.name, s.intent.text) >= _ALIKE]
        away = [abs(box.middle[1] - each.area.middle[1]) for box in seen for each in fields]
        found["t_caret_from_meant"] = min(away, default=math.nan)
    return found
