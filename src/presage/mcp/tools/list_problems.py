"""list_problems: list the problems, optionally filtered by a word or a room."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from presage.cli import documents
from presage.mcp.tool import Say, Tell, Tool, document

if TYPE_CHECKING:
    from presage.mcp.session import Session


async def call(session: Session, asked: dict[str, Any], tell: Tell) -> dict[str, Any]:
    return await session.work("list_problems", asked, tell)


def work(request: dict[str, Any], say: Say) -> dict[str, Any]:
    from presage.cli import problems
    from presage.problems import registry

    word, room = request.get("contains", "").lower(), request.get("room")
    found = [problems.summary(registry.get(name)) for name in registry.names()]
    kept = [
        each
        for each in found
        if room in (None, each["room"]) and word in f"{each['name']} {each['room']} {each['summary']}".lower()
    ]
    return documents.whole("problems", {"problems": kept})


TOOL = Tool(
    name="list_problems",
    title="List problems",
    description="List the operations that kernels can be forecast and measured for, each with its room (family) and"
    " what it computes. There are hundreds: narrow the list.",
    takes={
        "contains": {"type": "string", "maxLength": 100, "description": "Only those whose name or summary has this."},
        "room": {"type": "string", "maxLength": 100, "description": "Only those of this room, such as 'reductions'."},
    },
    gives=document("problems"),
    call=call,
)
