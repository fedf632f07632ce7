"""Tool: the description and schemas of a tool, its implementation, and the schemas that several tools share."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from presage.cli import documents

if TYPE_CHECKING:
    from presage.mcp.session import Session

Say = Callable[..., None]
"""Called in a worker with the current activity, the share that is done (0 to 1), and further values by name."""
Tell = Callable[[float, float | None, str], Awaitable[None]]
"""Called in the server to tell the agent of progress: the amount done, the total or None, and the current activity."""
MOST_KERNELS = 64


@dataclass(frozen=True)
class Tool:
    """One tool of the server."""

    name: str
    title: str
    description: str
    takes: Mapping[str, Any]
    """The JSON schema of each argument."""
    gives: Mapping[str, Any]
    """The JSON schema of the document that the tool returns."""
    call: Callable[[Session, dict[str, Any], Tell], Awaitable[dict[str, Any]]]
    """The part that runs in the server. It checks the request, counts budgets, and sends the request to a worker."""
    needs: tuple[str, ...] = ()
    """The arguments that are required."""
    read_only: bool = True
    """Whether the tool only reads: it measures, begins and stops nothing."""

    @property
    def input_schema(self) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": dict(self.takes),
            "required": list(self.needs),
            "additionalProperties": False,
        }


# -- schemas ----------------------------------------------------------------------------------------------------------

_SOURCE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "A file name; its end says what it is: mine.cu, mine.c, mine.py."},
        "source": {"type": "string", "description": "The text of the file."},
    },
    "required": ["name", "source"],
    "additionalProperties": False,
}
PROBLEM = {
    "description": "The name of a problem; or the path of a KernelBench file, a GPU MODE folder or a problem file of"
    " one's own; or the text of such a file.",
    "anyOf": [{"type": "string", "minLength": 1, "maxLength": 1000}, _SOURCE],
}
KERNEL = {
    "description": "A source; or the path of a file; or the name of one of the problem's own kernels"
    " (describe_problem lists them). After a path or name, @NAME=VALUE,… sets tunables.",
    "anyOf": [
        {"type": "string", "minLength": 1, "maxLength": 1000},
        {
            **_SOURCE,
            "properties": {
                **_SOURCE["properties"],
                "values": {
                    "type": "object",
                    "description": "Values of its tunables; the first of each by default.",
                    "propertyNames": {"pattern": r"^[A-Za-z_]\w*$"},
                    "additionalProperties": {"type": ["integer", "number", "string"]},
                },
            },
        },
    ],
}
KERNELS = {"type": "array", "minItems": 1, "maxItems": MOST_KERNELS, "items": KERNEL}
DEVICE = {
    "type": "string",
    "pattern": r"^[A-Za-z0-9_]+(:[A-Za-z0-9_-]+)?$",
    "description": "Where to measure: cuda, cpu, or recorded:NAME, which knows only what was recorded.",
}
TARGET = {
    "type": "string",
    "pattern": r"^[A-Za-z0-9_]+(:[A-Za-z0-9_-]+)?$",
    "description": "The hardware: a GPU such as h200 or rtx4090, or cpu. It need not be there. Default: h200.",
}
RUN = {
    "type": "string",
    "pattern": r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}$",
    "description": "The name of a run, as start_search gave it and list_runs lists it.",
}


@cache
def _shapes() -> dict[str, Any]:
    shapes: dict[str, Any] = json.loads(documents.SCHEMA.read_text())["$defs"]
    return shapes


def document(name: str) -> dict[str, Any]:
    """Return the JSON schema of a command's document, with the schemas that it refers to."""
    shape = dict(_shapes()[f"{name}/{documents.VERSION}"])
    found: dict[str, Any] = {}
    waiting = [shape]
    while waiting:
        for other in re.findall(r'"#/\$defs/([^"]+)"', json.dumps(waiting.pop())):
            if other not in found:
                found[other] = _shapes()[other]
                waiting.append(found[other])
    return shape | ({"$defs": found} if found else {})
