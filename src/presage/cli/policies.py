"""`presage policies [NAME]`, `presage policies new NAME` and `presage policies check NAME`."""

from __future__ import annotations

import argparse

from presage.cli import authoring
from presage.plugins.group import POLICIES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    authoring.add_arguments(parser, POLICIES, "show this policy and its settings")


def run(arguments: argparse.Namespace) -> int:
    verb, name = authoring.asked(arguments, POLICIES)
    if verb == "new":
        return authoring.new(arguments, POLICIES, name)
    if verb == "check":
        from presage.authoring import policy_check

        POLICIES.make(name)  # raises an error that says what is wrong with the name or the constructor
        return authoring.report(arguments, POLICIES, name, policy_check.check(POLICIES.load(name)))
    return authoring.show(arguments, POLICIES, name)
