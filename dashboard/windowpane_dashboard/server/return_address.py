"""The way back after signing in: to the page that was opened, which Streamlit would replace by the first one.

The page waits in a signed cookie that belongs to one exchange with the provider, by its `state`. Only the name of
a page of this dashboard and its parameters are kept, and the browser is sent to an address relative to its own:
no link can lead a user elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

from itsdangerous import BadData, URLSafeTimedSerializer
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from windowpane_dashboard.server.index_page import PAGES
from windowpane_dashboard.server.login import CALLBACK, origin_of

LOGIN: Final = "/auth/login"
COOKIE: Final = "windowpane_return"
LIFETIME_SECONDS: Final = 600
"""Longest time for signing in at the provider."""
LONGEST_ADDRESS: Final = 2_000
"""Characters; a browser stores at most 4,096 bytes of a cookie."""


class ReturnAddress:
    """ASGI middleware that sends users who have signed in to the page on which they pressed Sign in."""

    def __init__(self, app: ASGIApp, *, redirect: str, secret: str) -> None:
        """*redirect* is the address to which the provider sends users back, *secret* signs the cookie."""
        self._app = app
        self._origin = origin_of(redirect)
        self._signer = URLSafeTimedSerializer(secret, salt=COOKIE)
        self._attributes = "; Path=/; HttpOnly; SameSite=Lax" + (
            "; Secure" if redirect.startswith("https:") else ""
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and change the response where an exchange with the provider starts or ends."""
        path = scope["path"] if scope["type"] == "http" else ""
        if path.endswith(LOGIN):
            page = own_page(Headers(scope=scope).get("referer", ""), self._origin)
            if page is not None:
                send = self._remembering(page, send)
        elif path.endswith(CALLBACK):
            cookies = cookie_parser(Headers(scope=scope).get("cookie", ""))
            state = _state(scope["query_string"].decode("latin-1"))
            send = self._returning(self._page_of(cookies, state), send)
        await self._app(scope, receive, send)

    def _remembering(self, page: str, send: Send) -> Send:
        async def send_with_cookie(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                state = _state(urlsplit(headers.get("location", "")).query)
                signed = self._signer.dumps([state, page])
                headers.append("set-cookie", f"{COOKIE}={signed}; Max-Age={LIFETIME_SECONDS}{self._attributes}")
            await send(message)

        return send_with_cookie

    def _returning(self, page: str | None, send: Send) -> Send:
        async def send_to_page(message: Message) -> None:
            if message["type"] == "http.response.start" and page is not None:
                headers = MutableHeaders(scope=message)
                if "location" in headers:
                    headers["location"] = page
                headers.append("set-cookie", f"{COOKIE}=; Max-Age=0{self._attributes}")
            await send(message)

        return send_to_page

    def _page_of(self, cookies: Mapping[str, str], state: str) -> str | None:
        """Return the page of the exchange with this *state*; None for any other cookie."""
        try:
            stored: Any = self._signer.loads(cookies.get(COOKIE, ""), max_age=LIFETIME_SECONDS)
        except BadData:
            return None
        return stored[1] if state and stored[0] == state else None


def own_page(url: str, origin: str) -> str | None:
    """Return the page of this dashboard that *url* names, relative to the server; None for any other address."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    name = parts.path.rpartition("/")[2]
    if f"{parts.scheme}://{parts.netloc}" != origin or name not in ("", *PAGES):
        return None
    query = urlencode(parse_qsl(parts.query))
    page = f"./{name}?{query}" if query else f"./{name}"
    return page if len(page) <= LONGEST_ADDRESS else None


def _state(query: str) -> str:
    return parse_qs(query).get("state", [""])[0]
