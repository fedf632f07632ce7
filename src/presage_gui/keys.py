"""Key names: maps the spellings that agents use to one canonical name per key."""

from __future__ import annotations

from collections.abc import Sequence

MODIFIERS = ("ctrl", "alt", "shift", "meta")
NAMED = (
    "enter", "tab", "escape", "backspace", "delete", "insert", "space", "home", "end", "pageup", "pagedown",
    "up", "down", "left", "right", *(f"f{number}" for number in range(1, 13)),
)  # fmt: skip
ALIASES = {
    "control": "ctrl", "option": "alt", "command": "meta", "cmd": "meta", "super": "meta", "win": "meta",
    "return": "enter", "esc": "escape", "del": "delete", "ins": "insert", "spacebar": "space", " ": "space",
    "page_up": "pageup", "page_down": "pagedown", "pgup": "pageup", "pgdn": "pagedown", "back_space": "backspace",
    "arrowup": "up", "arrowdown": "down", "arrowleft": "left", "arrowright": "right",
}  # fmt: skip


class KeyNameError(ValueError):
    """An unknown key, or a chord of more than one key that is not a modifier."""


def parse_keys(names: Sequence[str]) -> tuple[str, ...]:
    """Return one chord in canonical names, modifiers first. A name such as `ctrl+a` counts as two keys.

    >>> parse_keys(["Control+Shift+T"]), parse_keys(["Return"]), parse_keys(["ctrl", "+"])
    (('ctrl', 'shift', 't'), ('enter',), ('ctrl', '+'))
    """
    parts = [part for name in names for part in _split(name)]
    known = [_key(part) for part in parts]
    modifiers = tuple(each for each in MODIFIERS if each in known)
    others = [each for each in known if each not in MODIFIERS]
    if len(others) > 1:
        raise KeyNameError(f"a chord has one key beside {', '.join(MODIFIERS)}, not {' and '.join(others)}")
    return (*modifiers, *others)


def _split(name: str) -> list[str]:
    if name.endswith("+"):
        return [*(part for part in name[:-1].split("+") if part), "+"]
    return [part for part in name.split("+") if part] if len(name) > 1 else [name]


def _key(name: str) -> str:
    word = name if name == " " else name.strip().lower()
    word = ALIASES.get(word, word)
    if word in MODIFIERS or word in NAMED:
        return word
    if len(name.strip()) == 1 and name.strip().isprintable():
        return name.strip().lower()
    raise KeyNameError(
        f"there is no key {name[:40]!r}; there are characters, {', '.join(NAMED)}, and {', '.join(MODIFIERS)}"
    )
