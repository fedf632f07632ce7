"""Generate intents in an agent's words: several templates for each kind of step, chosen at random."""

from __future__ import annotations

import random

from presage_gui.action import Action, Kind

_CLICK = (
    "Click the \"{name}\" {role}", "Click on \"{name}\"", "Click {name}", "Press the {name} {role}",
    "Select \"{name}\"", "I will click the {role} \"{name}\"", "Click on the {name} {role} to continue",
)  # fmt: skip
_CLICK_NAMELESS = ("Click the {role}", "Click on the {role}", "Put the cursor into the {role}")
_FIELD = ("Click the {name}", "Click on the {name} to focus it", "Focus the {name}", "Put the cursor into the {name}")
_TYPE = ('Type "{text}" into the {name}', 'Enter "{text}"', "Type {text}", 'Enter "{text}" in the {name}')
_SCROLL = (
    "Scroll {way}",
    "Scroll {way} to see {name}",
    "Scroll {way} in the list",
    "Scroll {way} until {name} is visible",
)
_DRAG = ("Drag the {name} to {to}", "Move the {name} to {to}", "Drag from the {name} to {to}")
_KEY = ("Press {keys}", "Use {keys}", "Hit {keys} on the keyboard")
_SELECT_ALL = ("Select all text in the {name} with ctrl+a", "Press ctrl+a to replace the text in the {name}")
_WAIT = ("Wait for the page to load", "Wait until it is ready", "Wait a moment")
_DONE = ("The task is complete", "Everything is done, finish the task", "Done: end the task")
_FAIL = ("The task cannot be done", "Give up: this is not possible")
_ANSWER = ('Answer with "{text}"', "Give the answer {text}")
FIELDS = ("text field", "text area", "drop-down list")


def intent(action: Action, name: str, role: str, rng: random.Random, to: str = "") -> str:
    """Return an intent that correctly describes an action. `name`, `role`: of the element; `to`: a drag's target.

    >>> from presage_gui.action import Action
    >>> intent(Action.parse("click(10, 10)"), "Submit", "button", random.Random(0))
    'Click on the Submit button to continue'
    """
    match action.kind:
        case Kind.TYPE:
            return _say(_TYPE, rng, text=action.text, name=_field(name, role))
        case Kind.ANSWER:
            return _say(_ANSWER, rng, text=action.text)
        case Kind.KEY if action.keys == ("ctrl", "a"):
            return _say(_SELECT_ALL, rng, name=_field(name, role))
        case Kind.KEY:
            return _say(_KEY, rng, keys="+".join(action.keys))
        case Kind.SCROLL:
            return _say(_SCROLL, rng, way="down" if action.dy > 0 else "up", name=name or "the rest")
        case Kind.DRAG:
            return _say(_DRAG, rng, name=name or role or "element", to=to or "the right place")
        case Kind.WAIT:
            return _say(_WAIT, rng)
        case Kind.TERMINATE:
            return _say(_DONE if action.success else _FAIL, rng)
    if role in FIELDS:
        return _say(_FIELD, rng, name=_field(name, role))
    if not name:
        return _say(_CLICK_NAMELESS, rng, role=role)
    return _say(_CLICK, rng, name=name, role=role if role != "element" else "").replace("  ", " ").strip()


def _field(name: str, role: str) -> str:
    if not name:
        return role or "text field"
    return name if any(word in name for word in ("field", "box", "area", "slider")) else f"{name} field"


def _say(ways: tuple[str, ...], rng: random.Random, **parts: str) -> str:
    return rng.choice(ways).format(**parts)
