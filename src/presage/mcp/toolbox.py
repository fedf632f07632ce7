"""The list of all tools, in the order in which an agent would use them."""

from __future__ import annotations

from presage.mcp.tool import Tool
from presage.mcp.tools import (
    describe_problem,
    follow_search,
    forecast,
    inspect,
    list_problems,
    list_runs,
    measure,
    read_run,
    start_search,
    stop_search,
)

TOOLS: dict[str, Tool] = {
    module.TOOL.name: module.TOOL
    for module in (
        list_problems,
        describe_problem,
        forecast,
        inspect,
        measure,
        start_search,
        follow_search,
        stop_search,
        list_runs,
        read_run,
    )
}
