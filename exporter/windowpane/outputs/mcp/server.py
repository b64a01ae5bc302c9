"""The server of the Model Context Protocol, over standard input and output."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server

from windowpane.core.version import PACKAGE, package_version
from windowpane.exceptions import WindowpaneError
from windowpane.outputs.mcp.agent_tools import AGENT_TOOLS, INSTRUCTIONS, AgentTools, Caller

_log = logging.getLogger(__name__)

Context = ServerRequestContext[Any, Any]


def mcp_server(tools: AgentTools) -> Server[Any]:
    """Return a server that answers with *tools*, one call at a time and never on the event loop."""
    turn = anyio.CapacityLimiter(1)

    async def list_tools(_: Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(name=tool.name, description=tool.description, input_schema=tool.schema)
                for tool in AGENT_TOOLS
            ]
        )

    async def call_tool(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        caller = _caller(context)

        def answer() -> str:
            return tools.call(params.name, params.arguments or {}, caller)

        try:
            return _result(await anyio.to_thread.run_sync(answer, limiter=turn))
        except WindowpaneError as error:
            return _result(str(error), failed=True)
        except Exception:  # noqa: BLE001  # an agent works on without its answer
            _log.exception("%s cannot be answered", params.name)
            return _result("Windowpane cannot answer; its log has the reason", failed=True)

    return Server(
        PACKAGE,
        version=package_version(),
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _result(text: str, *, failed: bool = False) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=failed)


def _caller(context: Context) -> Caller:
    """Return the program that the call comes from, as it names itself, and the metadata that it adds."""
    params = context.session.client_params
    return Caller("" if params is None else params.client_info.name, dict(context.meta or {}))


def serve_stdio(tools: AgentTools) -> None:
    """Serve one client on standard input and output until it closes them."""
    server = mcp_server(tools)

    async def serve() -> None:
        async with stdio_server() as (received, sent):
            await server.run(received, sent, server.create_initialization_options())

    anyio.run(serve)
