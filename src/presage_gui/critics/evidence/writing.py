"""Evidence about typing: whether the text fits the goal, and whether a field for it exists and has the focus."""

from __future__ import annotations

import math

from presage_gui.action import POINTING, Kind
from presage_gui.critics.evidence.pointing import about
from presage_gui.critics.evidence.situation import Situation
from presage_gui.sight.matching import contained, distance, likeness, tokens


def writing(s: Situation) -> dict[str, float]:
    if s.action.kind not in (Kind.TYPE, Kind.KEY):
        return {}
    if s.intent.text and s.action.kind is Kind.TYPE:
        return {**_focus(s), **_text(s), **about(s)}
    return {**_focus(s), **(_text(s) if s.action.kind is Kind.TYPE else _keys(s))}


def _focus(s: Situation) -> dict[str, float]:
    fields = [each for each in s.scene.elements if each.kind == "field"]
    clicks = [each for each in s.past if each.action.kind in POINTING]
    last_click = clicks[-1] if clicks else None
    found = {
        "t_focused": float(s.focused is not None),
        "t_fields": float(len(fields)),
        "t_clicked_before": float(bool(clicks)),
        "t_last_is_click": float(bool(s.last and s.last.action.kind in POINTING)),
        "t_last_is_key": float(bool(s.last and s.last.action.kind is Kind.KEY)),
        "t_last_is_type": float(bool(s.last and s.last.action.kind is Kind.TYPE)),
        "t_last_had_effect": float(bool(s.last and s.last.had_effect)),
        "t_click_on_field": float(bool(last_click and last_click.kind == "field")),
        "t_ready": float(
            s.focused is not None
            or bool(s.last and s.last.kind == "field" and s.last.had_effect)
            or bool(s.last and s.last.action.kind in (Kind.KEY, Kind.TYPE) and s.last.had_effect)
        ),
        "t_focus_filled": float(bool(s.focused and s.focused.text_box is not None)),
    }
    if s.focused is not None and s.intent.text:
        name, said = s.focused.name, s.intent.text
        named = [each.name for each in fields if each.name and contained(each.name, said) >= 0.85]
        found["t_field_meant"] = contained(name, said) if name else math.nan
        found["t_other_field_meant"] = float(any(each != name for each in named))
    return found


def _text(s: Situation) -> dict[str, float]:
    text, goal = s.action.text, s.goal.text
    wanted = text.strip()
    near = max((likeness(phrase, wanted) for phrase in s.goal.phrases), default=0.0)
    exactly = wanted in goal
    seen = [line.text for line in s.scene.lines if line not in s.scene.banner]
    on_screen = max((contained(wanted, line) for line in seen), default=0.0)
    joined = " ".join(seen)
    slip = min((distance(wanted[:60], phrase[:60]) for phrase in s.goal.phrases), default=99)
    found = {
        "t_words": float(len(tokens(text))),
        "t_in_goal": float(exactly),
        "t_in_goal_folded": float(wanted.casefold() in goal.casefold()),
        "t_as_words": float(bool(tokens(text)) and f" {' '.join(tokens(text))} " in f" {' '.join(s.goal.words)} "),
        "t_is_phrase": float(wanted in s.goal.phrases),
        "t_is_quoted": float(wanted in s.goal.quoted),
        "t_near_phrase": near,
        "t_slip": float(min(slip, 9)),
        "t_phrases": float(len(s.goal.phrases)),
        "t_quotes": float(len(s.goal.quoted)),
        "t_on_screen": on_screen,
        "t_on_screen_exactly": float(wanted in joined),
        "t_is_number": float(wanted.replace(".", "").replace("-", "").replace("/", "").replace(":", "").isdigit()),
        "t_is_lower": float(wanted == wanted.lower()),
        "t_is_upper": float(wanted == wanted.upper()),
        "t_goal_lower": float("lower" in s.goal.words),
        "t_goal_upper": float("upper" in s.goal.words or "capital" in goal),
        "t_edges": float(text != wanted),
        "t_repeats": float(sum(each.action.text == text for each in s.past if each.action.kind is Kind.TYPE)),
        "t_typed_before": float(len(s.typed)),
        "t_is_pending": max((likeness(phrase, wanted) for phrase in s.pending), default=0.0),
        "t_is_filler": float(_is_of_sentence(s, wanted)),
    }
    if s.intent.text:
        quoted = s.intent.quoted[0] if s.intent.quoted else None
        in_intent = wanted in s.intent.text
        found |= {
            "t_in_intent": float(in_intent),
            "t_intent_likeness": likeness(quoted, wanted) if quoted else contained(wanted, s.intent.text),
            "t_intent_exact": float(quoted.strip() == wanted) if quoted else float(in_intent),
            "t_meant_slip": float(min(distance(s.meant[:60], wanted.casefold()[:60]), 9)),
        }
        quote_in_goal = quoted is not None and quoted in goal
        found["t_intent_in_goal"] = float(quote_in_goal)
    return found


def _is_of_sentence(s: Situation, text: str) -> bool:
    """Whether the text is a single plain word of the goal that is not marked as a value (quoted, number, capital)."""
    words = tokens(text)
    return len(words) == 1 and words[0] in s.goal.words and text not in s.goal.phrases


def _keys(s: Situation) -> dict[str, float]:
    keys = s.action.keys
    chord = "+".join(keys)
    return {
        "k_modifier": float(len(keys) > 1),
        "k_enter": float(chord == "enter"),
        "k_tab": float(chord == "tab"),
        "k_moves": float(keys[-1] in ("up", "down", "left", "right", "home", "end", "pageup", "pagedown")),
        "k_deletes": float(keys[-1] in ("backspace", "delete")),
        "k_leaves": float(keys[-1] in ("escape", "f5")),
        "k_edits": float(chord in ("ctrl+a", "ctrl+c", "ctrl+v", "ctrl+x")),
        "k_repeats": float(sum(each.action.keys == keys for each in s.past)),
        "k_in_goal": float(any(key in s.goal.words for key in keys)),
    }
