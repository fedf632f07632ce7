"""Shown: what shows itself in a notebook."""

from __future__ import annotations

import importlib


class Shown:
    """Has a picture in `presage.report.notebook`, which is looked up by its name and only when a notebook asks: no noun
    depends on how it is drawn."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        drawn: str = importlib.import_module("presage.report.notebook").html(self)
        return drawn
