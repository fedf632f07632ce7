"""A critic that checks each action of a computer-use agent before the action is carried out.

This package exports the main classes. Modules that need the extra `[gui]` are imported only on first use.
"""

from __future__ import annotations

from presage_gui.action import Action, ActionError, Kind, Point, Space
from presage_gui.agent import Agent, Objection
from presage_gui.critic import Critic, ErrorClass, Verdict
from presage_gui.environment import Environment, Outcome
from presage_gui.history import Effect, Entry, History
from presage_gui.screen import Box, Screen
from presage_gui.step import Step

__all__ = [
    "Action",
    "ActionError",
    "Agent",
    "Box",
    "Critic",
    "Effect",
    "Entry",
    "Environment",
    "ErrorClass",
    "History",
    "Kind",
    "Objection",
    "Outcome",
    "Point",
    "Screen",
    "Space",
    "Step",
    "Verdict",
]
