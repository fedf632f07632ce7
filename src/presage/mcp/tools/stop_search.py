"""stop_search: stop a search. Its run can be continued."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from presage.mcp.progress import PROGRESS, of_run, progress
from presage.mcp.tool import RUN, Tell, Tool

if TYPE_CHECKING:
    from presage.mcp.session import Session


async def call(session: Session, asked: dict[str, Any], tell: Tell) -> dict[str, Any]:
    run = asked["run"]
    if run not in session.searches:
        return await of_run(session, run, tell)
    searching = session.searches[run]
    if not searching.ended.is_set():
        await session.stop([searching])
        await searching.ended.wait()
    return progress(session, searching, 0)


TOOL = Tool(
    name="stop_search",
    title="Stop a search",
    description="Stop a search. What was found is kept, and what was not spent goes back to the budget; start_search"
    " with the name of the run goes on with it.",
    takes={"run": RUN},
    needs=("run",),
    gives=PROGRESS,
    call=call,
    read_only=False,
)
