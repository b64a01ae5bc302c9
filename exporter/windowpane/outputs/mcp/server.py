"""The server of the Model Context Protocol, over standard input and output or over HTTP."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings

from windowpane.core.version import PACKAGE, package_version
from windowpane.exceptions import WindowpaneError
from windowpane.outputs.http.asgi_app import guarded_app
from windowpane.outputs.http.authentication import has_bearer_token, is_from_other_site
from windowpane.outputs.http.pages import FROM_OTHER_SITE, TOKEN_REQUIRED
from windowpane.outputs.http.routes import Response
from windowpane.outputs.mcp.agent_tools import AGENT_TOOLS, INSTRUCTIONS, AgentTools, Caller

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.datastructures import Headers

PATH: Final = "/mcp"
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


def serve_stdio(server: Server[Any]) -> None:
    """Serve one client on standard input and output until it closes them."""

    async def serve() -> None:
        async with stdio_server() as (received, sent):
            await server.run(received, sent, server.create_initialization_options())

    anyio.run(serve)


def mcp_app(server: Server[Any], *, bearer_token: str | None) -> Starlette:
    """Return the application of the streamable HTTP transport, at `PATH`, for programs of this machine."""
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        stateless_http=True,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # checked here
    )

    def refusal(_: str, headers: Headers) -> Response | None:
        host, origin = headers.get("host"), headers.get("origin")
        if bearer_token is None and is_from_other_site(host, origin, on_loopback=True):
            return FROM_OTHER_SITE
        is_authorized = has_bearer_token(headers.get("authorization", ""), bearer_token)
        return None if is_authorized else TOKEN_REQUIRED

    return guarded_app(
        app.routes,
        refusal=refusal,
        not_found=lambda: Response(404, f"not found; try {PATH}\n".encode()),
        lifespan=lambda _: server.session_manager.run(),
    )
