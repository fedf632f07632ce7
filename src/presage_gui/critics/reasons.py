"""Explain why a step looks wrong: an error class and a sentence, derived from the evidence. No solution is given."""

from __future__ import annotations

import math
from dataclasses import dataclass

from presage_gui.action import ENDING, POINTING, Kind
from presage_gui.critic import ErrorClass
from presage_gui.critics.evidence.situation import Situation

Evidence = dict[str, float]


@dataclass(frozen=True)
class Reason:
    error: ErrorClass
    words: str


def reason(s: Situation, seen: Evidence) -> Reason:
    """Return the reason of the first rule that applies. The most reliable rules come first."""
    for rule in (_repeated, _disagreeing, _busy, _ending, _typing, _moving, _grounded, _meaning):
        found = rule(s, seen)
        if found is not None:
            return found
    return Reason(ErrorClass.MEANING, "nothing on the screen ties this step to the goal")


def _value(seen: Evidence, name: str, otherwise: float = 0.0) -> float:
    value = seen.get(name, otherwise)
    return otherwise if math.isnan(value) else value


def _repeated(s: Situation, seen: Evidence) -> Reason | None:
    if _value(seen, "h_same_fruitless") or (_value(seen, "p_same_fruitless") and _value(seen, "h_fruitless")):
        return Reason(ErrorClass.OBSERVATION, "the same was done before and changed nothing on the screen")
    if _value(seen, "h_last_same") or _value(seen, "t_repeats"):
        return Reason(ErrorClass.DETOUR, "this was just done, and it had an effect")
    return None


def _disagreeing(s: Situation, seen: Evidence) -> Reason | None:
    if s.intent.text and _value(seen, "i_fits", 1.0) == 0 and _value(seen, "i_verb_fits", 1.0) == 0:
        return Reason(
            ErrorClass.DISAGREEMENT, f"the intent does not speak of a {s.action.kind.value.replace('_', ' ')}"
        )
    if s.action.kind is Kind.TYPE and s.intent.text and _value(seen, "t_intent_exact", 1.0) == 0:
        return Reason(ErrorClass.DISAGREEMENT, "the text is not the one that the intent names")
    return None


def _busy(s: Situation, seen: Evidence) -> Reason | None:
    if s.action.kind is Kind.WAIT:
        return Reason(ErrorClass.TIMING, "the screen does not look busy, so there is nothing to wait for")
    if _value(seen, "is_waiting") or (s.goal.words and not s.scene.elements):
        return Reason(ErrorClass.TIMING, "the screen looks busy or covered")
    return None


def _ending(s: Situation, seen: Evidence) -> Reason | None:
    if s.action.kind not in ENDING:
        return None
    if not s.action.success:
        return Reason(ErrorClass.ENDING, "nothing shows that the task cannot be done")
    left = f"; not dealt with so far: {len(s.pending)} of what the goal names" if s.pending else ""
    return Reason(ErrorClass.ENDING, f"the history does not show that the goal is reached{left}")


def _typing(s: Situation, seen: Evidence) -> Reason | None:
    if s.action.kind is Kind.KEY:
        return Reason(ErrorClass.DETOUR, "the goal gives no reason for this key")
    if s.action.kind is not Kind.TYPE:
        return None
    if not _value(seen, "t_focused") and not _value(seen, "t_click_on_field"):
        return Reason(ErrorClass.PREREQUISITE, "no field on the screen has the focus")
    if not _value(seen, "t_in_goal") and _value(seen, "t_near_phrase") > 0.6:
        return Reason(ErrorClass.CONSTRAINT, "the text is nearly, but not exactly, what the goal says")
    if _value(seen, "v_case_fits", 1.0) == 0:
        return Reason(ErrorClass.CONSTRAINT, "the letters are not as the goal wants them: capital or small")
    if _value(seen, "v_label_other"):
        return Reason(ErrorClass.MEANING, "the goal names another value beside the label of this field")
    return Reason(ErrorClass.MEANING, "the text is not what the goal asks for here")


def _moving(s: Situation, seen: Evidence) -> Reason | None:
    if s.action.kind not in (Kind.SCROLL, Kind.DRAG):
        return None
    ways = ("s_i_way", "s_g_way", "d_i_way", "d_g_way")
    if any(_value(seen, name, 1.0) < 0 for name in ways):
        return Reason(ErrorClass.PARAMETER, "it goes another way than the words say")
    if _value(seen, "s_fruitless"):
        return Reason(ErrorClass.OBSERVATION, "scrolling this way changed nothing before")
    return Reason(ErrorClass.PARAMETER, "where it starts, where it ends or how far it goes does not fit")


def _grounded(s: Situation, seen: Evidence) -> Reason | None:
    if s.action.kind not in POINTING or not s.intent.text:
        return None
    if s.meant and _value(seen, "i_best") < 0.7 and _value(seen, "i_best_partly", 1.0) < 0.8:
        return Reason(ErrorClass.HALLUCINATED, f"nothing that reads like {s.meant[:60]!r} is on the screen")
    if s.meant and _value(seen, "i_gap") > 0.3:
        return Reason(ErrorClass.GROUNDING, "what the intent names is on the screen, but not at this place")
    if _value(seen, "is_nothing") or _value(seen, "relative_margin", 1.0) < 0.05:
        return Reason(ErrorClass.GROUNDING, "there is no element at this place")
    if _value(seen, "i_role_fits", 1.0) == 0:
        return Reason(ErrorClass.DISAGREEMENT, "the element at this place is of another kind than the intent says")
    return None


def _meaning(s: Situation, seen: Evidence) -> Reason | None:
    if s.action.kind not in POINTING:
        return None
    if _value(seen, "is_nothing"):
        return Reason(ErrorClass.GROUNDING, "there is no element at this place")
    if _value(seen, "is_finishing") and (s.pending or not s.past):
        error = ErrorClass.CONSTRAINT if s.past else ErrorClass.PREREQUISITE
        return Reason(error, "this comes last, and something the goal names is not dealt with yet")
    if any(_value(seen, name, 1.0) == 0 for name in ("o_g_fits", "m_fits")):
        return Reason(ErrorClass.CONSTRAINT, "among its like it is not the one that the goal picks out")
    if _value(seen, "p_same_element") or _value(seen, "p_same_name"):
        return Reason(ErrorClass.DETOUR, "this element was used before")
    return Reason(ErrorClass.MEANING, "the element at this place is not what the goal speaks of")
