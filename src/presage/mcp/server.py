"""The server: list the tools, validate an agent's arguments, and answer with a document or an error message."""

from __future__ import annotations

import json
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import jsonschema
import mcp.types as types
from mcp.server.lowlevel import Server

import presage
from presage.core.errors import PresageError
from presage.core.text import excerpt, printable
from presage.mcp.session import Session, Settings
from presage.mcp.tool import Tell, Tool
from presage.mcp.toolbox import TOOLS

INSTRUCTIONS = """\
Presage forecasts how much faster a GPU or CPU kernel is than an anchor before it is measured, says how sure it is, and
measures what it is not sure of. Forecasts cost nothing: forecast many candidates in one call, measure the best few.
1. list_problems, describe_problem: what a kernel must look like. 2. forecast (up to 64 candidates) and inspect.
3. measure the few that are worth it. start_search searches tunables by itself. Measurements and searches have a budget.
"""


def build(settings: Settings) -> Server[Session]:
    """Return the server with all tools."""
    session = Session(settings)

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[Session]:
        async with session.opened():
            yield session

    return Server(
        "presage",
        version=presage.__version__,
        title="Presage",
        instructions=INSTRUCTIONS,
        lifespan=lifespan,
        on_list_tools=_list,
        on_call_tool=_call,
        get_tool_input_schema=lambda name: TOOLS[name].input_schema if name in TOOLS else None,
    )


async def _list(_: Any, __: Any) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[_described(tool) for tool in TOOLS.values()])


def _described(tool: Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=dict(tool.gives),
        annotations=types.ToolAnnotations(read_only_hint=tool.read_only, destructive_hint=False, open_world_hint=False),
    )


async def _call(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    try:
        tool, asked = _checked(params)
        document = await tool.call(context.lifespan_context, asked, _tell(context))
    except PresageError as error:
        return _failed(str(error))
    except Exception as error:
        traceback.print_exc()
        return _failed(f"this is a fault of presage, not of yours: {type(error).__name__}: {error}")
    text = json.dumps(document, separators=(",", ":"))
    return types.CallToolResult(content=[types.TextContent(text=text)], structured_content=document)


def _checked(params: types.CallToolRequestParams) -> tuple[Tool, dict[str, Any]]:
    tool = TOOLS.get(params.name)
    if tool is None:
        raise PresageError(f"there is no tool '{excerpt(params.name)}'; there are {', '.join(TOOLS)}")
    asked = dict(params.arguments or {})
    checker = jsonschema.Draft202012Validator(tool.input_schema)
    if wrong := jsonschema.exceptions.best_match(checker.iter_errors(asked)):
        where = ".".join(map(str, wrong.absolute_path))
        raise PresageError(f"{where or 'the arguments'}: {excerpt(wrong.message, 300)}")
    return tool, asked


def _failed(message: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=printable(message))], is_error=True)


def _tell(context: Any) -> Tell:
    """Return a function that reports progress. The protocol requires each value to be larger than the one before."""
    last = 0.0

    async def tell(progress: float, total: float | None, message: str) -> None:
        nonlocal last
        last = max(progress, last + 1e-4)
        await context.session.report_progress(last, total, printable(message))

    return tell
