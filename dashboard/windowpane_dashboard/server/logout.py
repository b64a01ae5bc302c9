"""The end of a login at the server, before Streamlit removes the cookie from the browser."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Receive, Scope, Send

from windowpane_dashboard.page import ended_logins
from windowpane_dashboard.page.login_cookie import claims_in

LOGOUT: Final = "/auth/logout"


class Logout:
    """ASGI middleware that ends the login of a browser that signs out."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """End the login where a request asks for it, and pass the request on."""
        if scope["type"] == "http" and scope["path"].endswith(LOGOUT):
            claims = claims_in(cookie_parser(Headers(scope=scope).get("cookie", "")))
            if claims:
                await asyncio.to_thread(ended_logins.end, claims)
        await self._app(scope, receive, send)
