"""Presage forecasts what a costly action will do before anyone pays for it."""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """`presage.search("softmax")` without importing anything before it is asked for."""
    if name == "search":
        import importlib

        return importlib.import_module("presage.search")
    raise AttributeError(f"module 'presage' has no attribute '{name}'")
