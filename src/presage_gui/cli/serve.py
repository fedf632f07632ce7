"""`presage-gui serve`: check steps for other agents, over HTTP or MCP."""

from __future__ import annotations

import argparse
import sys

from presage import PresageError
from presage_gui.cli.parts import add_critic, critic_of, gate_of
from presage_gui.service import Service
from presage_gui.serving import Server, speak_mcp


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_critic(parser)
    parser.add_argument("--mcp", action="store_true", help="speak MCP on standard input and output instead of HTTP")
    parser.add_argument(
        "--host", default="127.0.0.1", help="the address to listen on (default: 127.0.0.1, this machine only)"
    )
    parser.add_argument("--port", type=int, default=8765, help="the port; 0 takes a free one (default: 8765)")


def run(arguments: argparse.Namespace) -> int:
    service = Service(critic_of(arguments), gate_of(arguments), not arguments.no_fixes)
    if arguments.mcp:
        speak_mcp(service, sys.stdin, sys.stdout)
        return 0
    try:
        server = Server(service, arguments.host, arguments.port)
    except (OSError, OverflowError) as error:
        raise PresageError(f"cannot listen on {arguments.host}:{arguments.port}: {error}; try --port 0") from None
    print(f"listening on {server.address}: POST /check", flush=True)
    with server:
        server.serve_forever()
    return 0
