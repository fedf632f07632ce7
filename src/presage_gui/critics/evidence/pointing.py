"""Evidence about a click position: what is under it, and how that fits the intent, the goal and the history."""

from __future__ import annotations

import math

from presage_gui.action import POINTING, Point
from presage_gui.critics.evidence.situation import Situation
from presage_gui.critics.wording import Wording, is_committing, is_finishing
from presage_gui.screen import Box
from presage_gui.sight.boxes import ring
from presage_gui.sight.matching import contained, likeness, tokens
from presage_gui.sight.scene import Element, Scene, distance_to

KINDS = ("text", "button", "check", "field", "shape")
_NEAR = 3.0
_COLOURS = {
    "red": (255, 0, 0), "green": (0, 128, 0), "blue": (0, 0, 255), "yellow": (255, 255, 0), "black": (0, 0, 0),
    "white": (255, 255, 255), "grey": (128, 128, 128), "gray": (128, 128, 128), "orange": (255, 165, 0),
    "purple": (128, 0, 128), "pink": (255, 192, 203), "magenta": (255, 0, 255), "cyan": (0, 255, 255),
    "aqua": (0, 255, 255), "lime": (0, 255, 0), "brown": (139, 69, 19), "olive": (128, 128, 0), "navy": (0, 0, 128),
}  # fmt: skip


def pointing(s: Situation) -> dict[str, float]:
    at = s.action.at
    if at is None:
        return {}
    element = s.scene.element_at(at.x, at.y)
    return {
        **_under(s, at, element),
        **_against_intent(s, at, element),
        **_against_goal(s, at, element),
        **_against_past(s, at, element),
    }


def _under(s: Situation, at: Point, element: Element | None) -> dict[str, float]:
    surface = s.scene.surface(at.x, at.y)
    found = {
        "spread": surface.spread,
        "reach": surface.reach,
        "is_common": float(surface.is_common),
        "on_banner": float(any(line.box.holds(at.x, at.y) for line in s.scene.banner)),
        **{f"is_{kind}": float(element is not None and element.kind == kind) for kind in KINDS},
        "is_nothing": float(element is None),
    }
    if element is None:
        found["nearest"] = min((distance_to(each.area, at.x, at.y) for each in s.scene.elements), default=math.nan)
        return found
    area = element.area
    margin = min(at.x - area.left, area.right - at.x, at.y - area.top, area.bottom - at.y)
    return found | {
        "margin": margin,
        "relative_margin": margin / max(1.0, min(area.width, area.height)),
        "height": area.height,
        "is_named": float(bool(element.name)),
        "name_words": float(len(tokens(element.name))),
        "has_focus": ring(s.scene.screen.pixels, area) if element.kind in ("field", "button") else 0.0,
    }


def _against_intent(s: Situation, at: Point, element: Element | None) -> dict[str, float]:
    if not s.intent.text:
        return {}
    meant = s.meant
    found: dict[str, float] = {"i_words": float(len(tokens(meant))), **about(s)}
    roles = s.intent.roles
    if roles:
        found["i_role_fits"] = float(element is not None and element.kind in roles)
        found["i_role_anywhere"] = float(sum(each.kind in roles for each in s.scene.elements))
        if "field" in roles:
            found["i_field_fits"] = float(element is not None and element.kind == "field")
    colour = _colour_fit(s, s.intent, at)
    if colour is not None:
        found["i_colour"] = colour
    if not meant:
        return found
    matches = s.scene.find(meant)
    best = matches[0].score if matches else 0.0
    here = [match for match in matches if match.area.grown(_NEAR).holds(at.x, at.y)]
    exactly = [match for match in matches if match.area.holds(at.x, at.y)]
    hit = max((match.score for match in here), default=0.0)
    name = element.name if element else ""
    partly = max(contained(meant, name), contained(name, meant) if len(name) > 3 else 0.0) if name else 0.0
    top = [match for match in matches if match.score >= best - 0.03]
    found |= {
        "i_best": best,
        "i_hit": hit,
        "i_exact_hit": max((match.score for match in exactly), default=0.0),
        "i_gap": best - hit,
        "i_partly": partly,
        "i_count": float(len(top)),
        "i_distance": min((distance_to(match.area, at.x, at.y) for match in top), default=math.nan),
        "i_row": max((match.score for match in matches if _in_row(match.area, at)), default=0.0),
        "i_across": min((_across(match.area, at) for match in top), default=math.nan),
        "i_along": min((_along(match.area, at) for match in top), default=math.nan),
    }
    if not matches:
        covering = [
            max(contained(each.name, meant), contained(meant, each.name))
            for each in s.scene.elements
            if len(each.name) > 3
        ]
        found["i_best_partly"] = max(covering, default=0.0)
    return found


def about(s: Situation) -> dict[str, float]:
    """Evidence on whether what the intent names is asked for by the goal, pending, or done."""
    meant = s.meant
    if not meant:
        return {}
    return {
        "i_asked": _relevance(s, meant),
        "i_pending": max((max(likeness(p, meant), contained(p, meant)) for p in s.pending), default=0.0),
        "i_done": float(any(likeness(meant, name) >= 0.9 for name in (*s.touched, *s.typed))),
        "i_finishing": float(is_finishing(meant)),
        "i_early": float(is_finishing(meant) and bool(s.pending)),
    }


def _in_row(area: Box, at: Point) -> bool:
    return area.top - 3 <= at.y <= area.bottom + 3


def _across(area: Box, at: Point) -> float:
    """Return the vertical distance from a point to an area, in pixels."""
    return max(area.top - at.y, 0.0, at.y - area.bottom)


def _along(area: Box, at: Point) -> float:
    """Return the horizontal distance from a point to an area, in pixels."""
    return max(area.left - at.x, 0.0, at.x - area.right)


def _colour_fit(s: Situation, wording: Wording, at: Point) -> float | None:
    """Return the similarity, 0 to 1, of the colour at a point to the named colour, or None if no colour is named."""
    named = [_COLOURS[word] for word in wording.words if word in _COLOURS]
    if not named:
        return None
    seen = s.scene.surface(at.x, at.y).colour
    return max(1 - math.dist(seen, each) / 441.7 for each in named)


def _relevance(s: Situation, name: str) -> float:
    """Return how well the goal's phrases and words match an element's name, 0 to 1."""
    if not name:
        return 0.0
    quoted = max((likeness(phrase, name) for phrase in s.goal.phrases), default=0.0)
    words = [word for word in tokens(name) if len(word) > 1 or word.isalnum()]
    share = (
        sum(any(likeness(word, other) >= 0.85 for other in s.goal.words) for word in words) / len(words)
        if words
        else 0.0
    )
    return max(quoted, 0.8 * share)


def _against_goal(s: Situation, at: Point, element: Element | None) -> dict[str, float]:
    name = element.name if element else ""
    own = _relevance(s, name)
    others = [_relevance(s, each.name) for each in s.scene.elements if each.name and each is not element]
    pending = max((max(likeness(p, name), contained(p, name)) for p in s.pending), default=0.0) if name else 0.0
    next_one = max(likeness(s.pending[0], name), contained(s.pending[0], name)) if name and s.pending else 0.0
    word = _phrase_under(s.scene, s.goal.phrases, at)
    found = {
        "g_own": own,
        "g_best_other": max(others, default=0.0),
        "g_lead": own - max(others, default=0.0),
        "g_rank": sum(other > own + 0.01 for other in others) / max(1, len(others)),
        "g_pending_here": pending,
        "g_next_here": next_one,
        "g_word_here": word,
        "g_phrases": float(len(s.goal.phrases)),
        "g_pending": float(len(s.pending)),
        "g_pending_share": len(s.pending) / len(s.goal.phrases) if s.goal.phrases else math.nan,
        "g_visible": max((match.score for p in s.pending for match in s.scene.find(p, 0.8)[:1]), default=0.0),
        "is_finishing": float(is_finishing(name)),
        "is_committing": float(is_committing(name)),
        "g_asks_finish": float(any(is_finishing(word) for word in s.goal.words)),
    }
    found |= _row_of_goal(s, at)
    if element is not None and s.goal.roles:
        found["g_role_fits"] = float(element.kind in s.goal.roles)
    colour = _colour_fit(s, s.goal, at)
    if colour is not None:
        found["g_colour"] = colour
    return found


def _row_of_goal(s: Situation, at: Point) -> dict[str, float]:
    """Evidence on whether something that the goal names is in the row of a point, and the vertical distance to it."""
    areas = [match.area for phrase in s.goal.phrases for match in s.scene.find(phrase, 0.85)]
    if not areas:
        return {}
    return {
        "g_row": float(any(_in_row(area, at) for area in areas)),
        "g_across": min(_across(area, at) for area in areas),
    }


def _phrase_under(scene: Scene, phrases: tuple[str, ...], at: Point) -> float:
    """Return the best likeness of a phrase of the goal to the words under a point."""
    best = 0.0
    for phrase in phrases:
        best = max((m.score for m in scene.find(phrase, 0.7) if m.area.grown(_NEAR).holds(at.x, at.y)), default=best)
    return best


def _against_past(s: Situation, at: Point, element: Element | None) -> dict[str, float]:
    def is_same(place: Point | None) -> bool:
        return place is not None and math.hypot(place.x - at.x, place.y - at.y) <= 4

    def is_same_element(place: Point | None) -> bool:
        return place is not None and element is not None and element.area.holds(place.x, place.y)

    clicks = [each for each in s.past if each.action.kind in POINTING]
    same_name = [each for each in clicks if element is not None and element.name and each.name == element.name]
    fields = [each for each in s.scene.elements if each.kind == "field"]
    filled = [each for each in fields if each.text_box is not None]
    return {
        "p_same_place": float(sum(is_same(each.action.at) for each in clicks)),
        "p_same_element": float(sum(is_same_element(each.action.at) for each in clicks)),
        "p_same_name": float(len(same_name)),
        "p_last_same": float(bool(s.last and is_same_element(s.last.action.at))),
        "p_same_fruitless": float(
            any((is_same(each.action.at) or is_same_element(each.action.at)) and not each.had_effect for each in clicks)
        ),
        "p_other_clicks": float(len(clicks) - len(same_name)),
        "p_fields": float(len(fields)),
        "p_empty_fields": float(len(fields) - len(filled)),
    }
