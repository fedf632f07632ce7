"""Collect all evidence of one situation."""

from __future__ import annotations

import math

from presage_gui.action import ENDING, POINTING, Kind
from presage_gui.critics.evidence.conditions import conditions
from presage_gui.critics.evidence.moving import moving
from presage_gui.critics.evidence.pointing import pointing
from presage_gui.critics.evidence.progress import progress
from presage_gui.critics.evidence.situation import Situation
from presage_gui.critics.evidence.writing import writing
from presage_gui.critics.wording import WAITING, is_finishing
from presage_gui.screen import Pixels
from presage_gui.sight.matching import contained


def evidence(s: Situation) -> dict[str, float]:
    """Return all evidence of a situation as named numbers."""
    return {
        **_kind(s),
        **_state(s),
        **_history(s),
        **pointing(s),
        **writing(s),
        **moving(s),
        **_ending(s),
        **progress(s),
        **conditions(s),
    }


def _kind(s: Situation) -> dict[str, float]:
    found = {f"kind_{kind}": float(s.action.kind is kind) for kind in Kind}
    if s.intent.text:
        verbs = s.intent.verbs
        found["i_verb_fits"] = float(s.action.kind in verbs) if verbs else math.nan
        found["i_fits"] = float(s.intent.fits(s.action.kind))
        found["i_ends"] = float(bool(verbs & set(ENDING)) and not s.intent.quoted)
    return found


def _state(s: Situation) -> dict[str, float]:
    """Evidence on whether the screen is busy or empty, and how much it changed since the last step. As nothing was
    done since then, it should not have changed."""
    shown = " ".join(line.text for line in s.scene.lines if line not in s.scene.banner).casefold()
    found = {"is_waiting": float(any(word in shown for word in WAITING)), "is_empty": float(len(s.scene.elements) < 2)}
    if s.last is not None and s.last.entry.after.size == s.scene.screen.size:
        after, now = s.last.entry.after.pixels, s.scene.screen.pixels
        found["h_changed_share"] = 0.0 if after is now else _differing(after, now)
    return found


def _differing(a: Pixels, b: Pixels) -> float:
    """Return the share of pixels that differ."""
    unlike = a != b
    return float((unlike[..., 0] | unlike[..., 1] | unlike[..., 2]).mean())


def _history(s: Situation) -> dict[str, float]:
    last = s.last
    same = [each for each in s.past if each.action == s.action]
    found = {
        "h_begun": float(s.steps_before > 0),
        "h_fruitless": float(s.fruitless),
        "h_same": float(len(same)),
        "h_same_fruitless": float(sum(not each.had_effect for each in same)),
        "h_last_same": float(bool(last and last.action == s.action)),
        "h_finished": float(s.has_finished),
        "h_last_had_effect": math.nan if last is None else float(last.had_effect),
        "h_last_named": math.nan if last is None else float(bool(last.name)),
    }
    if last is not None:
        after = last.entry.after
        found["h_changed_since"] = float(after.digest != s.scene.screen.digest)
        if last.name and last.action.kind in POINTING:
            found["h_last_in_goal"] = contained(last.name, s.goal.text)
    return found


def _ending(s: Situation) -> dict[str, float]:
    kind = s.action.kind
    if kind not in (*ENDING, Kind.WAIT):
        return {}
    finishing = [each for each in s.scene.elements if is_finishing(each.name)]
    presses = [each for each in s.past if each.action.kind in POINTING and is_finishing(each.name)]
    found = {
        "e_success": float(s.action.success),
        "e_pending": float(len(s.pending)),
        "e_pending_share": len(s.pending) / len(s.goal.phrases) if s.goal.phrases else math.nan,
        "e_asks_finish": float(any(is_finishing(word) for word in s.goal.words)),
        "e_button": float(bool(finishing)),
        "e_pressed": float(len(presses)),
        "e_no_steps": float(not s.past),
        "e_last_is_click": float(bool(s.last and s.last.action.kind in POINTING)),
        "e_last_is_drag": float(bool(s.last and s.last.action.kind is Kind.DRAG)),
    }
    if s.last is not None and s.last.name:
        found["e_last_relevant"] = max((contained(p, s.last.name) for p in s.goal.phrases), default=0.0)
    if kind is Kind.ANSWER:
        found["e_answer_asked"] = float(
            any(word in s.goal.words for word in ("answer", "tell", "what", "which", "how", "who"))
        )
    return found
