"""Element: something that is seen, as the tree behind it tells. Critics never see it."""

from __future__ import annotations

from dataclasses import dataclass

from presage_gui.screen import Box


@dataclass(frozen=True)
class Element:
    """Something that is seen on the page."""

    box: Box
    name: str
    role: str
    tag: str
    value: str = ""
