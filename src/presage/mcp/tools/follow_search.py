"""follow_search: wait for a search, and return its progress."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio

from presage.mcp.progress import PROGRESS, of_run, progress
from presage.mcp.tool import RUN, Tell, Tool

if TYPE_CHECKING:
    from presage.mcp.session import Session


async def call(session: Session, asked: dict[str, Any], tell: Tell) -> dict[str, Any]:
    run, after = asked["run"], asked.get("after", 0)
    if run not in session.searches:
        return await of_run(session, run, tell)
    searching = session.searches[run]
    with anyio.move_on_after(asked.get("wait_seconds", 30)):
        told = after
        while not searching.ended.is_set():
            if len(searching.lines) > told:
                told = len(searching.lines)
                await tell(searching.measured, searching.limit, searching.lines[-1])
            with anyio.move_on_after(0.2):
                await searching.ended.wait()
    return progress(session, searching, after)


TOOL = Tool(
    name="follow_search",
    title="Follow a search",
    description="Wait until a search ends, or for wait_seconds, and return its state, the best speedup so far and what"
    " has happened since `after`. Call it again with after = next until state is not 'running'.",
    takes={
        "run": RUN,
        "after": {"type": "integer", "minimum": 0, "description": "`next` of the call before. Default: 0."},
        "wait_seconds": {"type": "number", "minimum": 0, "maximum": 300, "description": "Default: 30."},
    },
    needs=("run",),
    gives=PROGRESS,
    call=call,
)
