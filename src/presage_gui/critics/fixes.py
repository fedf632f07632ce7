"""Candidate fixes: steps that may be right instead of a doubted one. The critic scores them like any other step."""

from __future__ import annotations

from dataclasses import replace

from presage_gui.action import POINTING, Action, Kind, Point
from presage_gui.critics.evidence.situation import Situation
from presage_gui.screen import Box
from presage_gui.sight.scene import Element
from presage_gui.step import Step

_ALIKE = 0.9
_MOST = 4


def candidates(s: Situation) -> list[Step]:
    """Return a few candidate steps, the likeliest first, for a step that has an intent.

    The candidates keep the intent, except the click that gives a field the focus before typing."""
    if s.action.kind is Kind.TYPE:
        return [*_other_text(s), *_focus_first(s)][:_MOST]
    if s.action.kind in POINTING or s.action.at is None:
        return _other_place(s)[:_MOST]
    return []


def _other_place(s: Situation) -> list[Step]:
    if s.action.kind not in POINTING and not (s.intent.verbs & set(POINTING)):
        return []
    if s.meant:
        matches = s.scene.find(s.meant, _ALIKE)
        best = [match for match in matches if match.score >= matches[0].score - 0.02]
        areas = [match.area for match in best]
    else:
        areas = [each.area for each in _fields(s)] if "field" in s.intent.roles else []
    return [Step(_click(area), s.step.intent) for area in _apart(areas)]


def _other_text(s: Situation) -> list[Step]:
    quoted = [text for text in s.intent.quoted if text != s.action.text]
    return [replace(s.step, action=Action(Kind.TYPE, text=text)) for text in quoted[:1]]


def _focus_first(s: Situation) -> list[Step]:
    if s.focused is not None:
        return []
    fields = _fields(s)
    named = [each for each in fields if each.name and each.name.casefold().strip(" :") in s.intent.text.casefold()]
    chosen = named or (fields if len(fields) == 1 else [])
    return [Step(_click(each.area), f"Click the {each.name or 'text'} field") for each in chosen]


def _fields(s: Situation) -> list[Element]:
    """Return the fields. Of nested fields, only the innermost."""
    fields = [each for each in s.scene.elements if each.kind == "field" and each.area.height < 60]
    return [
        each for each in fields if not any(other is not each and _inside(other.area, each.area) for other in fields)
    ]


def _inside(inner: Box, outer: Box) -> bool:
    return (
        inner.area < outer.area
        and outer.grown(2).holds(inner.left, inner.top)
        and outer.grown(2).holds(inner.right - 1, inner.bottom - 1)
    )


def _click(area: Box) -> Action:
    x, y = area.middle
    return Action(Kind.CLICK, at=Point(round(x), round(y)))


def _apart(areas: list[Box]) -> list[Box]:
    kept: list[Box] = []
    for area in areas:
        if not any(other.holds(*area.middle) for other in kept):
            kept.append(area)
    return kept
