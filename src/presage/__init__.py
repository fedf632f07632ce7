"""Presage forecasts what a costly action will do before anyone pays for it."""

__version__ = "0.1.0"
