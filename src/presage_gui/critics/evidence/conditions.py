"""Evidence about conditions of the goal: ordinals, extremes, colours, sizes, parts, and how the page looks."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np

from presage_gui.action import ENDING, POINTING, Kind
from presage_gui.critics.evidence.situation import Situation, core
from presage_gui.critics.wording import ROLES, Wording, is_finishing, word_set
from presage_gui.sight.matching import contained, distance, likeness, tokens
from presage_gui.sight.scene import Element

_ALIKE = 0.85
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_LEAST = word_set("cheapest smallest lowest least shortest earliest youngest minimum fewest smaller tiniest")
_MOST = word_set("largest biggest highest greatest most longest latest oldest maximum larger priciest tallest")
_KINDS = (
    word_set("red green blue yellow black white grey gray orange purple pink magenta cyan aqua lime brown"),
    word_set("small large big little tiny smaller larger"),
    word_set("up down left right top bottom"),
    word_set("circle square triangle rectangle digit letter box star oval"),
)
"""Groups of mutually exclusive words. A step that names another word of a group than the goal breaks a condition."""
_NOT = word_set("not without except never don't avoid unless excluding")
_ASKING = {
    Kind.TYPE: word_set("type enter write fill paste input"),
    Kind.DRAG: word_set("drag slide draw highlight resize"),
    Kind.SCROLL: word_set("scroll"),
}
"""Words of goals that require this kind of action."""
_CLAUSE = re.compile(
    r"(?:^|[.,;:]\s*|\b(?:and|then|to|you|please)\s+)(?:then\s+)?"
    r"(?:click|press|select|choose|enter|type|check|tick|drag|move|find|search|open|scroll|copy|paste|highlight|hit|buy"
    r"|book|fill|write|use|set|mark|expand|delete|reply|forward|send|switch|go|add|remove|focus|login|log)\b",
    re.IGNORECASE,
)


def conditions(s: Situation) -> dict[str, float]:
    found = {**_parts(s), **_looks(s)}
    if s.intent.text:
        found |= _worded(s)
    if s.action.kind in POINTING and s.action.at is not None:
        found |= {**_order(s), **_extreme(s), **_field(s)}
    if s.action.kind is Kind.TYPE:
        found |= _value(s)
    return found


# -- The parts of the goal --------------------------------------------------------------------------------------------


def _parts(s: Situation) -> dict[str, float]:
    """Evidence on how many actions the goal asks for, and how many different ones were done."""
    clauses = len(_CLAUSE.findall(s.goal.text))
    worked = [each for each in s.past if each.had_effect]
    apart = len({(each.action.kind, each.name or str(each.action.at), each.action.text) for each in worked})
    shown = _shown(s)
    open_values = _open_values(s, shown)
    kept = [text for text in s.typed if contained(text, shown) >= 0.7]
    commits = s.action.kind in POINTING and is_finishing(_name(s))
    found = {
        "n_clauses": float(clauses),
        "n_left": float(clauses - apart),
        "n_negated": float(any(word in _NOT for word in s.goal.words)),
        "n_open": float(len(open_values)),
        "n_typed_shown": len(kept) / len(s.typed) if s.typed else math.nan,
        "n_listed": float(s.goal.text.count(",")),
    }
    if commits or s.action.kind in ENDING:
        found["n_short"] = float(max(0, clauses - commits - apart))
        found["n_ends_open"] = float(len(open_values))
        found["n_ends_kinds"] = float(len(_kinds_left(s)))
        found["n_ends_hidden"] = float(sum(not _is_seen(number, shown) for number in _numbers(s.goal)))
    return found


def _shown(s: Situation) -> str:
    """Return the text on the screen, without the lines that repeat the goal."""
    return " ".join(line.text for line in s.scene.lines if line not in s.scene.banner)


def _open_values(s: Situation, shown: str) -> list[str]:
    """Return the goal's pending phrases that are not visible on the screen, without names of finishing buttons."""
    values = [phrase for phrase in s.pending if not is_finishing(phrase)]
    return [value for value in values if contained(value, shown) < _ALIKE]


def _numbers(wording: Wording) -> list[str]:
    return [number for number in re.findall(r"(?<![\w.])-?\d+(?![\w.]*\d)", wording.text) if number]


def _is_seen(number: str, shown: str) -> bool:
    return bool(re.search(rf"(?<![\d.-]){re.escape(number)}(?!\d)", shown))


def _kinds_left(s: Situation) -> list[Kind]:
    """Return the kinds of action that the goal asks for and that have not been done with effect."""
    done = {each.action.kind for each in s.past if each.had_effect}
    if any(each.action.keys == ("ctrl", "v") for each in s.past):
        done.add(Kind.TYPE)
    return [kind for kind, verbs in _ASKING.items() if verbs & set(s.goal.words) and kind not in done]


def _name(s: Situation) -> str:
    element = _element(s)
    return element.name if element else ""


def _element(s: Situation) -> Element | None:
    at = s.action.at
    return s.scene.element_at(at.x, at.y) if at else None


# -- What the words say -----------------------------------------------------------------------------------------------


def _worded(s: Situation) -> dict[str, float]:
    """Evidence that compares the intent with the goal and with earlier intents."""
    ours, goals = set(s.intent.words), set(s.goal.words)
    both = [(kind & ours, kind & goals) for kind in _KINDS]
    mine, asked = ordinals(s.intent), ordinals(s.goal)
    numbers = [set(re.findall(r"\d+", wording.text)) for wording in (s.intent, s.goal)]
    meant = s.meant
    before = [each for each in s.past if each.entry.step.intent and _same_words(each.entry.step.intent, s.step.intent)]
    found = {
        "w_conflict": float(sum(bool(a and b and not a & b) for a, b in both)),
        "w_agree": float(sum(bool(a & b) for a, b in both)),
        "w_said": float(len(before)),
        "w_said_worked": float(sum(each.had_effect for each in before)),
        "w_new_number": float(bool(numbers[0] - numbers[1])),
        "w_quotes_goal": float(bool(s.intent.quoted) and s.intent.quoted[0] in s.goal.text),
    }
    if mine and asked:
        found["w_ordinal"] = float(bool(set(mine) & set(asked)))
    if meant:
        words = tokens(meant)
        spoken = " ".join(s.goal.words)
        found["w_meant_share"] = sum(contained(word, spoken) >= _ALIKE for word in words) / max(1, len(words))
        found["w_meant_first"] = _place_in(meant, s)
        found |= _words_on_screen(s, words)
    return found


def _words_on_screen(s: Situation, words: Sequence[str]) -> dict[str, float]:
    """Evidence on where the words that the intent and the goal's values share are, relative to the click."""
    at = s.action.at
    values = {word for phrase in s.goal.phrases for word in tokens(phrase)}
    own = [word for word in words if word in values and len(word) > 1]
    areas = [match.area for word in own for match in s.scene.find(word, _ALIKE)]
    if at is None or not own:
        return {}
    return {
        "w_value_seen": float(bool(areas)),
        "w_value_hit": float(any(area.grown(3).holds(at.x, at.y) for area in areas)),
        "w_value_across": min((max(area.top - at.y, 0.0, at.y - area.bottom) for area in areas), default=math.nan),
    }


def _same_words(a: str, b: str) -> bool:
    one, other = Wording(a), Wording(b)
    if one.quoted and other.quoted:
        return one.quoted[0] == other.quoted[0] and one.verbs == other.verbs
    return bool(core(a)) and core(a) == core(b) and one.verbs == other.verbs


def _place_in(name: str, s: Situation) -> float:
    """Return how many pending phrases of the goal come before this name, or NaN if the name is not pending."""
    for place, phrase in enumerate(s.pending):
        if max(likeness(phrase, name), contained(phrase, name)) >= _ALIKE:
            return float(place)
    return math.nan


def ordinals(wording: Wording) -> tuple[int, ...]:
    """Return the ordinals in a text. "last" is -1.

    >>> ordinals(Wording("Click the 3rd row, then the second and the last one"))
    (3, 2, -1)
    """
    return tuple(rank for word in wording.words if (rank := _rank(word)))


def _rank(word: str) -> int:
    """Return the rank that an ordinal names, or 0 for other words."""
    if match := re.fullmatch(r"(\d+)(?:st|nd|rd|th)", word):
        return int(match[1])
    if word in _ORDINALS:
        return _ORDINALS.index(word) + 1
    return -1 if word == "last" else 0


# -- Order and extremes -----------------------------------------------------------------------------------------------


def _order(s: Situation) -> dict[str, float]:
    """Evidence on whether the element has the position among its peers that an ordinal asks for."""
    element = _element(s)
    found: dict[str, float] = {}
    for name, wording in (("g", s.goal), ("i", s.intent)):
        asked = ordinals(wording)
        if not asked or element is None or not _may_be(wording, element):
            continue
        peers = _in_reading_order([each for each in s.scene.elements if _is_peer(each, element)])
        ranks = {peers.index(element) + 1, -1 if peers[-1] is element else 0}
        found[f"o_{name}_fits"] = float(bool(ranks & set(asked)))
        found[f"o_{name}_peers"] = float(len(peers))
    return found


def _may_be(wording: Wording, element: Element) -> bool:
    """Whether an ordinal in this text may refer to an element of this kind."""
    words = wording.words
    nouns = " ".join(" ".join(words[i + 1 : i + 3]) for i, word in enumerate(words) if _rank(word))
    kinds = [kind for kind, names in ROLES.items() if any(each in nouns for each in names)]
    return not kinds or element.kind in kinds


def _is_peer(each: Element, element: Element) -> bool:
    return each.kind == element.kind and bool(each.name) == bool(element.name)


def _in_reading_order(elements: Sequence[Element]) -> list[Element]:
    return sorted(elements, key=lambda each: (round(each.area.middle[1] / 8), each.area.left))


def _extreme(s: Situation) -> dict[str, float]:
    """Evidence on whether the element has the least or greatest number in its label, or size, among its peers."""
    least, most = bool(_LEAST & set(s.goal.words)), bool(_MOST & set(s.goal.words))
    element = _element(s)
    if least == most or element is None:
        return {}
    own = _number(element.name)
    if own is not None:
        shape = _pattern(element.name)
        numbers = [_number(each.name) for each in s.scene.elements if _pattern(each.name) == shape]
        others = [each for each in numbers if each is not None]
    elif not element.name:
        own = element.area.area
        others = [each.area.area for each in s.scene.elements if each.kind == element.kind and not each.name]
    else:
        return {}
    if len(others) < 2:
        return {}
    return {"m_fits": float(own <= min(others) if least else own >= max(others)), "m_peers": float(len(others))}


def _number(text: str) -> float | None:
    match = re.search(r"-?\d+(?:[.,]\d+)*", text)
    return float(match[0].replace(",", "").rstrip(".")) if match and match[0].count(".") < 2 else None


def _pattern(text: str) -> str:
    return re.sub(r"\d[\d.,]*", "#", text.casefold())


def _field(s: Situation) -> dict[str, float]:
    """Evidence about the field under the click: whether it is filled, whether by an earlier step, and focused."""
    element = _element(s)
    if element is None or element.kind != "field":
        return {}
    inside = [line.text for line in s.scene.lines if element.area.holds(*line.box.middle)]
    written = any(contained(text[:40], " ".join(inside)) >= 0.7 for text in s.typed)
    return {"f_filled": float(bool(inside)), "f_written": float(written), "f_focused": float(s.focused is element)}


# -- What is typed ----------------------------------------------------------------------------------------------------


def _value(s: Situation) -> dict[str, float]:
    """Evidence that compares the typed text with the words on the screen and the values in the goal."""
    text = s.action.text.strip()
    words = [word.text.strip(".,;:!?") for line in s.scene.lines if line not in s.scene.banner for word in line.words]
    same = [word for word in words if word == text]
    folded = [word for word in words if word.casefold() == text.casefold()]
    slips = [distance(text.casefold(), word.casefold()) for word in words if abs(len(word) - len(text)) <= 2]
    quotes = [quote.casefold() for quote in s.goal.quoted]
    asked = ordinals(s.goal)
    found = {
        "v_word": float(bool(same)),
        "v_other_case": float(bool(folded) and not same and text not in s.goal.text),
        "v_slip": float(min([*slips, 9])),
        "v_cased_oddly": float(bool(re.search(r"[a-z][A-Z]|^[a-z]+ ?[A-Z]{2}", text)) and text not in s.goal.text),
        "v_unquoted": float(bool(quotes) and text.casefold() not in quotes),
        "v_case_fits": _case_fits(s, text),
        **_beside_label(s, text),
    }
    if asked and text and words:
        places = {i + 1 for i, word in enumerate(words) if word.casefold() == text.casefold()}
        found["v_ordinal"] = float(bool(places & set(asked)))
    return found


def _case_fits(s: Situation, text: str) -> float:
    """Return 1 if the letter case is the one that the goal asks for, or else uses, 0 if not, NaN if unknown."""
    said = set(s.goal.words)
    if said & {"lower", "lowercase", "lower-case"}:
        return float(text == text.lower())
    if said & {"upper", "uppercase", "upper-case", "capital", "capitals"}:
        return float(text == text.upper())
    if text.casefold() not in s.goal.text.casefold():
        return math.nan
    return float(text in s.goal.text)


def _beside_label(s: Situation, text: str) -> dict[str, float]:
    """Evidence on how many words apart the field's label and the typed value are in the goal, and whether another
    value is nearer to the label."""
    label = s.focused.name if s.focused else ""
    if s.intent.text and (said := re.search(r"\b(?:into|in) the (.+?)(?: field)?$", s.intent.text)):
        label = said[1]
    goal = s.goal.words
    named = [i for i, word in enumerate(goal) for part in tokens(label) if len(part) > 2 and _same_root(part, word)]
    mine = [i for i, word in enumerate(goal) if tokens(text) and word == tokens(text)[0]]
    others = [
        i for i, word in enumerate(goal) for phrase in s.goal.phrases
        if tokens(phrase)[:1] == [word] and likeness(phrase, text) < _ALIKE
    ]  # fmt: skip
    if not named or not mine:
        return {}
    near = min(abs(i - j) for i in named for j in mine)
    nearest = min((abs(i - j) for i in named for j in others), default=99)
    return {"v_label_away": float(near), "v_label_other": float(nearest < near)}


def _same_root(a: str, b: str) -> bool:
    """Whether two words share their first letters, as director and directed do."""
    size = min(len(a), len(b), 5)
    return a[:size] == b[:size] and size >= min(4, len(a))


# -- How the page looks -----------------------------------------------------------------------------------------------


def _looks(s: Situation) -> dict[str, float]:
    """Evidence on brightness and emptiness. A covered page is dim, washed out or empty."""
    grey = s.scene.screen.pixels[::2, ::2].mean(axis=2)
    counts = np.bincount(grey.astype(int).ravel(), minlength=256)
    lines = [line for line in s.scene.lines if line not in s.scene.banner]
    return {
        "l_common": float(counts.argmax()),
        "l_common_share": float(counts.max() / grey.size),
        "l_dark": float(np.quantile(grey, 0.02)),
        "l_bright": float(np.quantile(grey, 0.98)),
        "l_lines": float(min(len(lines), 12)),
        "l_banner": float(bool(s.scene.banner)),
    }
