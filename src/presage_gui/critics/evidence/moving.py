"""Evidence about scrolls and drags: their start and end, their direction, and whether the goal asks for them."""

from __future__ import annotations

import math

from presage_gui.action import Kind, Point
from presage_gui.critics.evidence.situation import Situation
from presage_gui.critics.wording import Wording
from presage_gui.sight.matching import contained
from presage_gui.sight.scene import distance_to

_WAYS = {"up": (0, -1), "top": (0, -1), "down": (0, 1), "bottom": (0, 1), "left": (-1, 0), "right": (1, 0)}
_SEEN = 0.85


def moving(s: Situation) -> dict[str, float]:
    if s.action.kind is Kind.SCROLL:
        return _scroll(s)
    if s.action.kind is Kind.DRAG and s.action.at and s.action.to:
        return _drag(s, s.action.at, s.action.to)
    return {}


def _way(wording: Wording, dx: float, dy: float) -> float:
    """Return how well a movement fits the named direction: 1 the same, -1 the opposite, NaN if none is named."""
    length = math.hypot(dx, dy)
    named = [_WAYS[word] for word in wording.words if word in _WAYS]
    if not named or not length:
        return math.nan
    return max((x * dx + y * dy) / length for x, y in named)


def _scroll(s: Situation) -> dict[str, float]:
    at = s.action.at or Point(s.scene.screen.width / 2, s.scene.screen.height / 2)
    inside = [box for box in s.scene.boxes if box.holds(at.x, at.y) and box.height > 40]
    scrolls = [each for each in s.past if each.action.kind is Kind.SCROLL]
    same_way = [each for each in scrolls if each.action.dy * s.action.dy > 0]
    return {
        "s_amount": abs(s.action.dy),
        "s_pages": abs(s.action.dy) / max(40.0, inside[0].height if inside else s.scene.screen.height / 2),
        "s_down": float(s.action.dy > 0),
        "s_in_box": float(bool(inside)),
        "s_i_way": _way(s.intent, s.action.dx, s.action.dy),
        "s_g_way": _way(s.goal, s.action.dx, s.action.dy),
        "s_g_scrolls": float("scroll" in s.goal.words),
        "s_seen": float(any(s.scene.find(phrase, _SEEN) for phrase in s.pending)),
        "s_i_seen": float(bool(s.meant) and bool(s.scene.find(s.meant, _SEEN))),
        "s_fruitless": float(sum(not each.had_effect for each in same_way)),
        "s_before": float(len(scrolls)),
        "s_back": float(sum(each.action.dy * s.action.dy < 0 for each in scrolls)),
        "s_first": float(not s.past),
        "s_cut": _cut_text(s, inside[0].bottom if inside else 210.0),
    }


def _cut_text(s: Situation, bottom: float) -> float:
    """Return 1 if a line of text is at or across the lower edge of the scrolled area: there is more below."""
    return float(
        any(abs(line.box.bottom - bottom) < 6 or line.box.top < bottom < line.box.bottom for line in s.scene.lines)
    )


def _drag(s: Situation, at: Point, to: Point) -> dict[str, float]:
    dx, dy = to.x - at.x, to.y - at.y
    start, end = s.scene.surface(at.x, at.y), s.scene.surface(to.x, to.y)
    source, target = s.scene.element_at(at.x, at.y), s.scene.element_at(to.x, to.y)
    on_text = any(line.box.grown(3).holds(at.x, at.y) for line in s.scene.lines if line not in s.scene.banner)
    to_text = any(line.box.grown(3).holds(to.x, to.y) for line in s.scene.lines if line not in s.scene.banner)
    to_edge = min(to.x, to.y, s.scene.screen.width - to.x, s.scene.screen.height - to.y)
    found = {
        "d_length": math.hypot(dx, dy),
        "d_straight": max(abs(dx), abs(dy)) / max(1.0, math.hypot(dx, dy)),
        "d_from_common": float(start.is_common),
        "d_to_common": float(end.is_common),
        "d_from_reach": start.reach,
        "d_to_reach": end.reach,
        "d_to_spread": end.spread,
        "d_to_element": float(target is not None),
        "d_to_same": float(source is not None and source is target),
        "d_on_text": float(on_text),
        "d_to_text": float(to_text),
        "d_to_banner": float(any(line.box.holds(to.x, to.y) for line in s.scene.banner)),
        "d_to_edge": to_edge,
        "d_g_way": _way(s.goal, dx, dy),
        "d_repeats": float(sum(each.action.kind is Kind.DRAG for each in s.past)),
        "d_g_number": float(any(phrase.lstrip("-").isdigit() for phrase in s.goal.phrases)),
        "d_g_whole_text": float("highlight" in s.goal.words or "select" in s.goal.words),
    }
    containers = [box for box in s.scene.boxes if box.holds(to.x, to.y) and not box.holds(at.x, at.y)]
    found |= {
        "d_into": float(bool(containers)),
        "d_steps": math.hypot(dx, dy) / max(8.0, math.sqrt(source.area.area) if source else 40.0),
        "d_to_pages": max(abs(dx) / s.scene.screen.width, abs(dy) / s.scene.screen.height),
        "d_worked": float(any(each.action.kind is Kind.DRAG and each.had_effect for each in s.past)),
    }
    if source is not None and source.name:
        found["d_g_source"] = contained(source.name, s.goal.text)
    if target is not None and target.name:
        found["d_g_end"] = contained(target.name, s.goal.text)
    if s.intent.text:
        found["d_i_way"] = _way(s.intent, dx, dy)
        _, _, after = s.intent.text.rpartition(" to ")
        ends = s.scene.find(after, 0.8) if after else []
        if ends:
            found["d_i_end"] = min(distance_to(match.area, to.x, to.y) for match in ends)
        if source is not None and source.name:
            found["d_i_source"] = contained(source.name, s.intent.text)
    return found
