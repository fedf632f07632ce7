"""`presage forecasters [NAME]`, `presage forecasters new NAME` and `presage forecasters check NAME`."""

from __future__ import annotations

import argparse

from presage.cli import authoring
from presage.plugins.group import FORECASTERS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    authoring.add_arguments(parser, FORECASTERS, "show this forecaster and its settings")
    parser.add_argument("--recording", help="for a forecaster that learns from one: an installed one, or a file")


def run(arguments: argparse.Namespace) -> int:
    verb, name = authoring.asked(arguments, FORECASTERS)
    if verb == "new":
        return authoring.new(arguments, FORECASTERS, name)
    if verb == "check":
        return _check(arguments, name)
    return authoring.show(arguments, FORECASTERS, name)


def _check(arguments: argparse.Namespace, name: str) -> int:
    from presage.authoring import forecaster_check
    from presage.devices import recorded
    from presage.forecasters import registry

    forecaster = registry.get(name, recorded.find(arguments.recording) if arguments.recording else None)
    try:
        return authoring.report(arguments, FORECASTERS, name, forecaster_check.check(forecaster))
    finally:
        forecaster.close()
