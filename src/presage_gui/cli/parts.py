"""Arguments that several commands share: the critic, and the thresholds of the gate."""

from __future__ import annotations

import argparse

from presage_gui.critic import Critic
from presage_gui.deciding import Gate, Threshold
from presage_gui.registry import CRITICS, make


def add_critic(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--critic", default="pixels", metavar="NAME", help="who checks the steps (default: pixels)")
    parser.add_argument(
        "--threshold", type=float, default=0.5, help="least probability of a step that passes (default: 0.5)"
    )
    parser.add_argument("--strict", type=float, default=0.8, help="the same for what cannot be undone (default: 0.8)")
    parser.add_argument(
        "--risk", type=float, metavar="ALPHA",
        help="the most bad steps that may pass, as a share of them (0.1: a tenth), in the place of thresholds",
    )  # fmt: skip
    parser.add_argument(
        "--no-fixes", action="store_true", help="criticism only: no step of the critic's own is offered"
    )


def critic_of(arguments: argparse.Namespace) -> Critic:
    made: Critic = make(CRITICS, arguments.critic)
    return made


def gate_of(arguments: argparse.Namespace) -> Gate:
    if getattr(arguments, "risk", None) is not None:
        from presage_gui.guarding import Guard

        return Guard(arguments.risk)
    return Threshold(arguments.threshold, arguments.strict)
