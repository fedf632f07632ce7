"""read_run: return the result of a search, with the source of the best kernel."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from presage.core.errors import PresageError
from presage.mcp.tool import RUN, Say, Tell, Tool, document

if TYPE_CHECKING:
    from presage.mcp.session import Session

_SEARCH = document("search")
_GIVES = {
    **_SEARCH,
    "description": "The document of `presage search --json`; `stopped` is true for a run that is not finished.",
    "properties": {
        **_SEARCH["properties"],
        "source": {"type": "string", "description": "The source of the best kernel."},
    },
}


async def call(session: Session, asked: dict[str, Any], tell: Tell) -> dict[str, Any]:
    return await session.work("read_run", {"folder": str(session.folder(asked["run"]))}, tell)


def work(request: dict[str, Any], say: Say) -> dict[str, Any]:
    from presage.cli import documents, search
    from presage.mcp.searching import needs
    from presage.searches.run import Run
    from presage.store.store import FILE

    folder = Path(request["folder"])
    if not (folder / FILE).is_file():
        raise PresageError(f"there is no run '{folder.name}'; list_runs lists them")
    run = Run(folder)
    if request.get("needs"):
        return needs(run, request)
    told = search.document(run) if run.result else search.so_far(run)
    return documents.whole("search", told | {"run": folder.name, "source": run.best.kernel.source})


TOOL = Tool(
    name="read_run",
    title="Read a run",
    description="What a search has found: the best kernel with its source and its speedup with an interval, why the"
    " search ended, what it spent, and what trusting forecasts may have missed. Works while it goes on, too.",
    takes={"run": RUN},
    needs=("run",),
    gives=_GIVES,
    call=call,
)
