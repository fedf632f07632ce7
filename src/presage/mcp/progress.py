"""The progress document that start_search, follow_search and stop_search return."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from presage.mcp.tool import Tell

if TYPE_CHECKING:
    from presage.mcp.session import Searching, Session

_MOST_LINES = 200
PROGRESS = {
    "type": "object",
    "description": "Where a search stands.",
    "properties": {
        "run": {"type": "string", "description": "Its name."},
        "state": {
            "enum": ["running", "finished", "stopped", "failed"],
            "description": "`stopped`: start_search with its name goes on with it. `failed`: `error` says why.",
        },
        "measured": {"type": ["integer", "null"], "description": "Measurements so far."},
        "limit": {"type": ["integer", "null"], "description": "Measurements at most."},
        "best_speedup": {"type": ["number", "null"], "description": "Over the anchor, so far."},
        "lines": {"type": "array", "items": {"type": "string"}, "description": "What has happened since `after`."},
        "next": {"type": "integer", "description": "`after` for the next call."},
        "error": {"type": "string"},
        "left": {
            "type": "object",
            "additionalProperties": {"type": "number"},
            "description": "What is left to this server of its budgets.",
        },
    },
    "required": ["run", "state", "measured", "limit", "best_speedup", "lines", "next", "error", "left"],
    "additionalProperties": False,
}


def progress(session: Session, searching: Searching, after: int) -> dict[str, Any]:
    """Return the progress of a search that this server began. `lines` has at most the latest 200 lines."""
    if not searching.ended.is_set():
        state = "running"
    elif searching.error:
        state = "failed"
    else:
        state = "stopped" if searching.is_stopping else "finished"
    return {
        "run": searching.run,
        "state": state,
        "measured": searching.measured,
        "limit": searching.limit,
        "best_speedup": searching.best,
        "lines": searching.lines[after:][-_MOST_LINES:],
        "next": len(searching.lines),
        "error": searching.error,
        "left": session.allowance.to_json(),
    }


async def of_run(session: Session, run: str, tell: Tell) -> dict[str, Any]:
    """Return the progress of a run that this server did not begin."""
    found = await session.work("read_run", {"folder": str(session.folder(run))}, tell)
    return {
        "run": run,
        "state": "stopped" if found["stopped"] else "finished",
        "measured": found["measurements"],
        "limit": None,
        "best_speedup": found["best"]["speedup"]["value"],
        "lines": [],
        "next": 0,
        "error": "",
        "left": session.allowance.to_json(),
    }
