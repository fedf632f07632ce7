"""Parse the wording of a goal or an intent: quoted names, roles and verbs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from presage_gui.action import Kind
from presage_gui.sight.matching import tokens

_QUOTED = re.compile(r"\"([^\"]+)\"|“([^”]+)”|(?<!\w)'([^']+)'(?!\w)")
_NUMBER = re.compile(r"(?<![\w.])[-+]?\$?\d[\d.,:/%-]*")


def word_set(text: str) -> frozenset[str]:
    """Return the set of whitespace-separated words in a text."""
    return frozenset(text.split())


FILLERS = word_set("""
    a an and any are as at be by for from in into is it its of on or so that the their them then there this to until
    when where which with you your all each every below above shown following please just now task screen page
    window click press tap select choose pick hit open close type enter write fill input find locate use set move
    drag drop scroll mark check tick focus double right left button link field text box textbox textfield area
    checkbox radio tab item option element icon label menu list drop-down dropdown slider handle shape section cell
    row column first last next end done finish answer wait give has have was were been being am do does will would
    should must can one labeled labelled called named number value word key place go get make
""")
"""Words of instructions that do not name an element on the screen by themselves."""
ROLES = {
    "button": ("button",),
    "check": ("checkbox", "check box", "radio", "checkboxes"),
    "field": ("text field", "textbox", "text box", "text area", "textarea", "input", "field", "search bar"),
    "shape": ("shape", "circle", "box", "square", "triangle", "rectangle", "handle", "slider", "icon", "image"),
    "text": ("link", "tab", "item", "option", "section", "cell", "row", "label", "menu item", "word", "text", "result"),
}
"""The words that goals and intents use for each kind of element in a scene."""
VERBS = {
    Kind.CLICK: (
        "click",
        "press",
        "tap",
        "select",
        "choose",
        "open",
        "check",
        "tick",
        "focus",
        "hit",
        "expand",
        "place",
    ),
    Kind.DOUBLE: ("double-click", "double"),
    Kind.RIGHT: ("right-click",),
    Kind.TYPE: ("type", "enter", "write", "fill", "input"),
    Kind.KEY: ("press", "key", "hit", "shortcut", "copy", "paste", "delete", "clear"),
    Kind.SCROLL: ("scroll",),
    Kind.DRAG: ("drag", "move", "slide", "draw", "highlight", "resize", "drop", "select"),
    Kind.WAIT: ("wait",),
    Kind.ANSWER: ("answer", "say", "report"),
    Kind.TERMINATE: ("end", "done", "finish", "stop", "complete", "terminate"),
}
COMMITTING = word_set("""
    submit send pay buy order purchase delete remove confirm checkout book transfer post publish forward reply trash
    erase format uninstall unsubscribe sign agree accept place donate discard overwrite reset
""")
"""Words in the names of elements whose action is hard or impossible to undo."""
FINISHING = word_set("""
    submit ok done search go send save login confirm finish apply continue buy book order next
""")
"""Names of buttons that are pressed last, after the rest of a form is filled in."""
WAITING = ("loading", "please wait", "processing", "in progress", "working", "one moment")


@dataclass(frozen=True)
class Wording:
    """The parsed text of a goal or an intent."""

    text: str

    @cached_property
    def quoted(self) -> tuple[str, ...]:
        """The quoted parts, in order."""
        return tuple(next(filter(None, groups)).strip() for groups in _QUOTED.findall(self.text))

    @cached_property
    def words(self) -> tuple[str, ...]:
        return tuple(tokens(self.text))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Words outside quotes that are not in `FILLERS` and may name an element."""
        outside = _QUOTED.sub(" ", self.text)
        return tuple(word for word in tokens(outside) if word not in FILLERS)

    @cached_property
    def phrases(self) -> tuple[str, ...]:
        """What the text may be about: quotes, numbers and capitalised words inside a sentence, without duplicates."""
        outside = _QUOTED.sub(" ; ", self.text)
        capital = [
            match.strip(" .,;:")
            for match in re.findall(r"(?<=[\w,;] )(?:[@#$]?[A-Z][\w'@.-]*)(?: [A-Z][\w'-]*)*", f"x {outside}"[2:])
        ]
        found = [*self.quoted, *_NUMBER.findall(outside), *capital]
        return tuple(dict.fromkeys(phrase for each in found if (phrase := each.strip(" .,;:"))))

    @cached_property
    def roles(self) -> frozenset[str]:
        outside = f" {_QUOTED.sub(' ', self.text).casefold()} "
        return frozenset(
            kind for kind, names in ROLES.items() if any(re.search(rf"\b{name}s?\b", outside) for name in names)
        )

    def fits(self, kind: Kind) -> bool:
        """Whether a word outside quotes is a verb for this kind of action."""
        outside = tokens(_QUOTED.sub(" ", self.text))
        return any(verb in outside for verb in VERBS[kind])

    @cached_property
    def verbs(self) -> frozenset[Kind]:
        """The kinds of action that the first verb stands for."""
        for word in tokens(_QUOTED.sub(" ", self.text)):
            kinds = frozenset(kind for kind, verbs in VERBS.items() if word in verbs)
            if kinds:
                return kinds
        return frozenset()


def is_committing(name: str) -> bool:
    """Whether an element with this name pays, sends, deletes or submits.

    >>> is_committing("Submit order"), is_committing("Submarine")
    (True, False)
    """
    return any(word in COMMITTING for word in tokens(name)[:4])


def is_finishing(name: str) -> bool:
    words = tokens(name)
    return 0 < len(words) <= 3 and any(word in FINISHING for word in words)
