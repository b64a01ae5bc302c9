"""The applications of the servers: what is checked of every request, and the endpoints of `serve`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from starlette import responses
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.routing import BaseRoute, Route

from windowpane.outputs.http.pages import INTERNAL_ERROR, Pages
from windowpane.outputs.http.request_bodies import BodyBudget, BodyError, BodyReader
from windowpane.outputs.http.routes import PostRequest, Response, Routes

if TYPE_CHECKING:
    from starlette.datastructures import Headers
    from starlette.types import ASGIApp, Lifespan, Receive, Scope, Send

PIECE_BYTES: Final = 128 * 1024
"""More than the connection buffers, so that each piece waits until the one before was read."""

_AMBIGUOUS: Final = Response(
    400, b"Transfer-Encoding must be chunked, without a Content-Length\n", headers=(("Connection", "close"),)
)
"""The response to a body of ambiguous length, whose rest a server on the way could take for another request."""
_AMBIGUOUS_HEADERS: Final = {"content-length", "transfer-encoding"}

_log = logging.getLogger(__name__)

Refusal = Callable[[str, "Headers"], Response | None]
"""Returns the response to a client that may not request a path, by its headers; None if it may."""


def guarded_app(
    routes: Sequence[BaseRoute],
    *,
    refusal: Refusal,
    not_found: Callable[[], Response],
    render: Callable[[Response], Response] = lambda response: response,
    lifespan: Lifespan[Any] | None = None,
) -> Starlette:
    """Return an application that checks every request, and whose errors do not reach clients.

    *render* gives the responses that are not those of an endpoint their form.
    """

    async def failed(request: Request, error: Exception) -> responses.Response:
        _log.error("cannot respond to %r", request.scope["path"], exc_info=error)
        return sent(render(INTERNAL_ERROR))

    async def unrouted(_: Request, error: Exception) -> responses.Response:
        assert isinstance(error, HTTPException)
        if error.status_code == 404:
            return sent(render(not_found()))
        allowed = sorted((error.headers or {}).get("Allow", "").split(", "))
        text = f"send a {' or '.join(allowed)}\n"
        return sent(render(Response(405, text.encode(), headers=(("Allow", ", ".join(allowed)),))))

    app = Starlette(
        routes=routes,
        middleware=[Middleware(_RefusalMiddleware, refusal=refusal, render=render)],
        exception_handlers={Exception: failed, 404: unrouted, 405: unrouted},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    return app


def sent(response: Response) -> responses.Response:
    """Return a response in the form that Starlette sends."""
    return _PiecewiseResponse(response.body, response.status, dict(response.headers), response.content_type)


class _PiecewiseResponse(responses.Response):
    """Sends a large body in pieces, so that a slow client can be distinguished from one that does not read."""

    async def __call__(self, _: Scope, __: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        for start in range(0, max(1, len(self.body)), PIECE_BYTES):
            more = start + PIECE_BYTES < len(self.body)
            piece = self.body[start : start + PIECE_BYTES]
            await send({"type": "http.response.body", "body": piece, "more_body": more})


class _RefusalMiddleware:
    """Answers the requests of clients that may not make them."""

    def __init__(self, app: ASGIApp, refusal: Refusal, render: Callable[[Response], Response]) -> None:
        self._app = app
        self._refusal = refusal
        self._render = render

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = Request(scope).headers
            refused = (
                _AMBIGUOUS if set(headers.keys()) >= _AMBIGUOUS_HEADERS else self._refusal(scope["path"], headers)
            )
            if refused is not None:
                await sent(self._render(refused))(scope, receive, send)
                return
        await self._app(scope, receive, send)


def serve_app(routes: Routes, *, on_loopback: bool) -> Starlette:
    """Return the application of `windowpane serve`: its pages, and the handlers of what it receives."""
    pages = Pages(routes, on_loopback=on_loopback)
    budget = BodyBudget()

    def refusal(path: str, headers: Headers) -> Response | None:
        return pages.refusal(
            path,
            host=headers.get("host"),
            origin=headers.get("origin"),
            authorization=_joined(headers, "authorization"),
        )

    async def page(request: Request) -> responses.Response:
        def respond() -> Response:
            return pages.respond(
                request.scope["path"],
                accept=_joined(request.headers, "accept"),
                accept_encoding=_joined(request.headers, "accept-encoding"),
                authorization=_joined(request.headers, "authorization"),
            )

        return sent(await asyncio.to_thread(respond))

    async def post(request: Request) -> responses.Response:
        project = routes.project_of(_joined(request.headers, "authorization"))
        reader = BodyReader(budget, project)
        try:
            body = await reader.read(request.headers, request.receive)
            path = request.scope["path"]
            return sent(await routes.posts[path](PostRequest(path, request.headers, body, project)))
        except BodyError as error:
            return sent(Response(error.status, f"{error}\n".encode(), headers=error.headers))
        finally:
            reader.close()

    return guarded_app(
        [
            *(Route(path, page, methods=["GET"]) for path in pages.paths),
            *(Route(path, post, methods=["POST"]) for path in routes.posts),
        ],
        refusal=refusal,
        not_found=pages.not_found,
    )


def _joined(headers: Headers, name: str) -> str:
    """Return all headers of a name as one comma-separated list."""
    return ", ".join(headers.getlist(name))
