"""list_runs: list the runs in the server's folder, finished or not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from presage.cli import documents
from presage.mcp.tool import Say, Tell, Tool, document

if TYPE_CHECKING:
    from presage.mcp.session import Session


async def call(session: Session, asked: dict[str, Any], tell: Tell) -> dict[str, Any]:
    return await session.work("list_runs", {"folder": str(session.runs)}, tell)


def work(request: dict[str, Any], say: Say) -> dict[str, Any]:
    from presage.cli import runs
    from presage.searches.run import folders

    found = [runs.describe(folder) | {"run": folder.name} for folder in folders(Path(request["folder"]))]
    return documents.whole("runs", {"runs": found})


TOOL = Tool(
    name="list_runs",
    title="List runs",
    description="List the searches of this server's folder, from earlier sessions, too: problem, device, measurements,"
    " best speedup and state.",
    takes={},
    gives=document("runs"),
    call=call,
)
