"""Protection of the dashboard from pages of other sites: a request has to come from the dashboard itself.

Streamlit compares only host names, so a page on another port of this machine could open a connection and read the
sessions, and any name that resolves to 127.0.0.1 could too. With the dashboard in a frame, such a page could make
a visitor click on a button that it covers; Streamlit has no setting against that.
"""

from __future__ import annotations

import ipaddress
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from windowpane.outputs.http.authentication import is_own_origin

REASON: Final = "this request does not come from the dashboard; public_url names the address it is reached at\n"
POLICY_VIOLATION: Final = 1008
"""Close code of a WebSocket that is refused."""


NOT_FRAMED: Final = (
    (b"content-security-policy", b"frame-ancestors 'self'"),
    (b"x-frame-options", b"SAMEORIGIN"),
)


class OwnOriginOnly:
    """ASGI middleware that refuses requests whose `Host` or `Origin` is not the dashboard's own, and frames."""

    def __init__(self, app: ASGIApp, *, address: str, public_url: str | None = None) -> None:
        """*address* is listened on; *public_url* is the address of a proxy before the dashboard."""
        self._app = app
        public = urlsplit(public_url or "")
        self._hosts = {address.lower(), public.hostname}
        self._origin = f"{public.scheme}://{public.netloc}".lower() if public_url else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""

        async def send_not_framed(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *NOT_FRAMED]}
            await send(message)

        if scope["type"] == "lifespan" or self._accepts(Headers(scope=scope)):
            await self._app(scope, receive, send_not_framed)
        elif scope["type"] == "websocket":
            await WebSocketClose(POLICY_VIOLATION, REASON.strip())(scope, receive, send)
        else:
            await PlainTextResponse(REASON, status_code=403)(scope, receive, send_not_framed)

    def _accepts(self, headers: Headers) -> bool:
        host = headers.get("host", "").lower()
        origin = headers.get("origin")
        if not self._names_this_server(host):
            return False
        return is_own_origin(origin, host) or str(origin).lower() == self._origin

    def _names_this_server(self, host: str) -> bool:
        """Return whether the `Host` header cannot be the name of another site that resolves to this machine."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return name in self._hosts or name == "localhost" or name.endswith(".localhost") or _is_ip_address(name)


def _is_ip_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
