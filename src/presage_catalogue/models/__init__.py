"""Trained models. Each is an entry point in the group `presage.models`: the path of its folder."""

from pathlib import Path

LEARNED = Path(__file__).with_name("learned")
OPERATORS = Path(__file__).with_name("operators")
MODULES = Path(__file__).with_name("modules")
