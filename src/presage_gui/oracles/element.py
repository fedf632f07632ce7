"""The `Element` class: a visible element, as described by the element tree. Critics never see it."""

from __future__ import annotations

from dataclasses import dataclass

from presage_gui.screen import Box


@dataclass(frozen=True)
class Element:
    """A visible element of the page."""

    box: Box
    name: str
    role: str
    tag: str
    value: str = ""
