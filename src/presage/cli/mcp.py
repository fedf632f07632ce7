"""`presage mcp`: serve coding agents over stdin and stdout, or over HTTP."""

from __future__ import annotations

import argparse
import importlib
import os
from importlib.util import find_spec
from pathlib import Path

from presage.cli import terminal
from presage.core.errors import PresageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--root", type=Path, action="append", default=[], metavar="FOLDER",
        help="agents may name files in this folder; can be repeated (default: none, they hand over text)",
    )  # fmt: skip
    parser.add_argument(
        "--runs", type=Path, default=Path("presage-runs"), metavar="FOLDER",
        help="where the runs of searches are kept (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--device", action="append", default=[], metavar="NAME",
        help="agents may measure only on this device; can be repeated (default: any)",
    )  # fmt: skip
    limits = parser.add_argument_group("budgets of the server, which are never exceeded, whoever connects")
    limits.add_argument(
        "--max-measurements",
        type=terminal.whole(0),
        default=200,
        metavar="N",
        help="measurements (default: %(default)s)",
    )
    limits.add_argument(
        "--max-device-seconds", type=terminal.positive, default=1800.0, metavar="S",
        help="seconds on devices (default: %(default)s)",
    )  # fmt: skip
    limits.add_argument(
        "--max-searches", type=terminal.whole(0), default=8, metavar="N", help="searches (default: %(default)s)"
    )
    web = parser.add_argument_group("HTTP, in place of stdin and stdout")
    web.add_argument("--http", action="store_true", help="serve streamable HTTP, at the path /mcp")
    web.add_argument("--host", default="127.0.0.1", help="the address (default: %(default)s)")
    web.add_argument(
        "--port", type=terminal.port, default=8765, metavar="PORT",
        help="the port; 0 takes a free one (default: %(default)s)",
    )  # fmt: skip
    web.add_argument(
        "--allow-host", action="append", default=[], metavar="NAME",
        help="a name by which clients may call this computer, beside its own; can be repeated",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    if not find_spec("mcp"):
        raise PresageError("'presage mcp' needs the extra 'mcp': pip install 'presage-kernels[mcp]'")
    session = importlib.import_module("presage.mcp.session")
    transports = importlib.import_module("presage.mcp.transports")
    settings = session.Settings(
        tuple(arguments.root),
        arguments.runs,
        tuple(arguments.device),
        session.Amounts(arguments.max_measurements, arguments.max_device_seconds, arguments.max_searches),
    )
    if arguments.http:
        token = os.environ.get(transports.TOKEN) or None
        transports.serve_http(settings, arguments.host, arguments.port, token, arguments.allow_host)
    else:
        transports.serve_pipes(settings)
    return 0
