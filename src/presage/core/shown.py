"""Shown: the base class of objects that a notebook displays as HTML."""

from __future__ import annotations

import importlib


class Shown:
    """An object that `presage.report.notebook` renders as HTML. That module is imported by name, and only when a
    notebook asks, so that the subclasses do not depend on how they are rendered."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        drawn: str = importlib.import_module("presage.report.notebook").html(self)
        return drawn
