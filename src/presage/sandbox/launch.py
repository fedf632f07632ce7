"""The start of a child: it enters the sandbox and runs its target. Runs inside the child."""

from __future__ import annotations

import importlib
import json
import os
import socket
import sys
from collections.abc import Callable
from typing import Any

from presage.sandbox import confinement
from presage.sandbox.rules import Rules

NOT_STARTED = 127
"""The exit status of a program that could not be started, as in a shell."""


class Gate:
    """The entry into the sandbox, in two steps. The first, which needs a process with one thread, is done when a target
    gets the gate. The second is `close`."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._rules = Rules.from_json(settings["rules"])
        self._listener = socket.socket(fileno=settings["listener"]) if "listener" in settings else None
        counted = bool(settings["group"]) and _enter_group(settings["group"])
        self._held = {"memory": counted} | confinement.separate(self._rules)

    def close(self, executes: bool = False) -> dict[str, bool]:
        """Remove all other rights. Returns which layers are in force. `executes`: whether the process executes a
        program right afterwards. Then it has nothing open from outside the sandbox, not even its previous program,
        which it could reach in /proc."""
        global _is_confined
        alone = executes and self._held["mounts"]
        held = self._held | confinement.confine(self._rules, alone, self._held["memory"], self._listener)
        _is_confined = True
        return held


_is_confined = False


def is_confined() -> bool:
    """Whether this process has closed a gate and so is confined."""
    return _is_confined


def _enter_group(door: str) -> bool:
    """Enter a control group that counts memory. Returns whether that worked."""
    try:
        with open(door, "w") as file:
            file.write("0")
    except OSError:
        return False
    return True


def start(settings: dict[str, Any]) -> None:
    """Call the target with its settings and the gate. The target closes the gate before any foreign code runs."""
    target = _target(settings["target"])
    target(settings, Gate(settings))


def _target(name: str) -> Callable[[dict[str, Any], Gate], None]:
    module, _, function = name.partition(":")
    found: Callable[[dict[str, Any], Gate], None] = getattr(importlib.import_module(module), function)
    return found


def execute(settings: dict[str, Any], gate: Gate) -> None:
    """Enter the sandbox and become a program, such as a compiler."""
    gate.close(executes=True)
    try:
        os.execve(settings["command"][0], settings["command"], settings["environment"])
    except OSError as error:
        print(f"cannot start {settings['command'][0]}: {error.strerror}", file=sys.stderr, flush=True)
        os._exit(NOT_STARTED)


def tell_layers(settings: dict[str, Any], gate: Gate) -> None:
    """Enter the sandbox only to print which of its layers are in force."""
    print(json.dumps(gate.close()), flush=True)
    os._exit(0)


def main() -> None:
    start(json.loads(sys.argv[1]))
