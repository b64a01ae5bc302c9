"""The calls that pass through the proxy, observed: bytes are collected as they pass and read on the worker.

The proxy's event loop only takes references to the pieces. Decompressing, parsing, comparing and counting happen
on the queue of the outputs, as for a watched client. Of the headers only the encoding and the name of the client
program are read; none is kept.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Sequence
from typing import Final

import httpx2

from windowpane.effects.error_boundary import ErrorBoundary
from windowpane.models.replies import Reply
from windowpane.observer.clients.bodies import MAXIMUM_BODY_BYTES
from windowpane.observer.clients.calls import WatchedCall, start_call
from windowpane.observer.conversations import Scope
from windowpane.observer.messages import ApiCall, Shape
from windowpane.sources.exchanges.bodies import Api, api_of_path, read_call, read_response

MAXIMUM_ERROR_BYTES: Final = 64 << 10
_FIRST_FAILURE: Final = 400
"""Status codes from here on are failures."""
_BYTES_PER_WEIGHT: Final = 1_000
_PROGRAMS: Final = (
    (re.compile(rb"^claude-cli/"), "claude-code"),
    (re.compile(rb"^codex"), "codex"),
    (re.compile(rb"^GeminiCLI"), "gemini-cli"),
    (re.compile(rb"^(?:QwenCode|qwen-code)", re.IGNORECASE), "qwen-code"),
    (re.compile(rb"^opencode/"), "opencode"),
)
"""Starts of the `User-Agent` of known agents, and their names here."""

Headers = Sequence[tuple[bytes, bytes]]

boundary: Final = ErrorBoundary(logging.getLogger("windowpane"))


class UpstreamError(Exception):
    """The provider answered with an error; the message is its status and text."""


class SentBody:
    """A call as the bytes of its request, read on the worker."""

    __slots__ = ("_api", "_headers", "_pieces", "_uri", "call", "shape")

    def __init__(self, api: Api, uri: str, headers: Headers, pieces: list[bytes]) -> None:
        self._api = api
        self._uri = uri
        self._headers = headers
        self._pieces = pieces
        self.shape: Shape = api
        self.call: ApiCall | None = None
        """The call, once it was read."""

    def before_return(self) -> None:
        """Do nothing: bytes do not change."""

    def read(self) -> ApiCall:
        """Return the call. Raises `ValueError` or `TypeError` for a body that is not one."""
        request = json.loads(decoded(self._headers, self._pieces))
        if not isinstance(request, dict):
            raise TypeError(f"expected a JSON object as the request, got {type(request).__name__}")
        self.call = read_call(self._api, request, uri=self._uri)
        return self.call

    def release(self) -> None:
        """Drop the bytes."""
        self._pieces = []

    def read_reply(self, headers: Headers, pieces: list[bytes]) -> Reply:
        """Return the reply that came back to this call."""
        if self.call is None or not pieces:
            return Reply()
        body = decoded(headers, pieces).decode("utf-8", "replace")
        return read_response(self._api, body)


class Exchange:
    """One request and its response while they pass. No method raises."""

    def __init__(self, method: str, uri: str, headers: Headers, scope: Scope) -> None:
        self._api = api_of_path(uri) if method == "POST" else None
        self._uri = uri
        self._headers = headers
        self._scope = scope
        self._sent: list[bytes] = []
        self._received: list[bytes] = []
        self._size = 0
        self._status = 0
        self._with_headers: Headers = ()
        self._body: SentBody | None = None
        self._watched: WatchedCall | None = None

    def add_sent(self, piece: bytes) -> None:
        """Retain a piece of the request."""
        if self._api is not None:
            self._size += len(piece)
            if self._size <= MAXIMUM_BODY_BYTES:
                self._sent.append(piece)
            else:
                self._api, self._sent = None, []

    def sent(self) -> None:
        """Record that the whole request was sent."""
        if self._api is None or self._watched is not None:
            return
        with boundary.contain("observing a call"):
            scope = self._scope
            program = _program(self._headers)
            if program is not None:
                scope = Scope(program, limit_tokens=scope.limit_tokens)
            encoding = [pair for pair in self._headers if pair[0] == b"content-encoding"]
            body = SentBody(self._api, self._uri, encoding, self._sent)
            self._watched = start_call(body, scope, weight=1 + self._size // _BYTES_PER_WEIGHT)
            self._body = body
        self._sent, self._size = [], 0

    def answered(self, status: int, headers: Headers) -> None:
        """Record the status and the headers of the response."""
        self._status = status
        self._with_headers = [pair for pair in headers if pair[0].lower() == b"content-encoding"]

    def add_received(self, piece: bytes) -> None:
        """Retain a piece of the response."""
        if self._watched is not None:
            self._size += len(piece)
            if self._size <= MAXIMUM_BODY_BYTES:
                self._received.append(piece)
            else:
                self._received = []

    def ended(self) -> None:
        """Record that the response ended, or that the client left before its end."""
        watched, body, pieces, headers = self._watched, self._body, self._received, self._with_headers
        if watched is None or body is None:
            return
        with boundary.contain("observing a reply"):
            if self._status >= _FIRST_FAILURE:
                watched.record_failure(UpstreamError(f"{self._status} {_error_text(headers, pieces)}"))
            else:
                watched.record_reply(pieces, lambda pieces, _shape: body.read_reply(headers, pieces))

    def failed(self, error: BaseException) -> None:
        """Record that no response came back."""
        if self._watched is not None:
            self._watched.record_failure(error)


def decoded(headers: Iterable[tuple[bytes, bytes]], pieces: Iterable[bytes]) -> bytes:
    """Return the content of a body, by the `Content-Encoding` among *headers*."""
    return httpx2.Response(200, headers=list(headers), content=b"".join(pieces)).content


def _error_text(headers: Headers, pieces: list[bytes]) -> str:
    if sum(map(len, pieces)) > MAXIMUM_ERROR_BYTES:
        return "error"
    try:
        return decoded(headers, pieces).decode("utf-8", "replace")
    except httpx2.DecodingError:
        return "error"


def _program(headers: Headers) -> str | None:
    agent = next((value for name, value in headers if name == b"user-agent"), b"")
    return next((name for pattern, name in _PROGRAMS if pattern.search(agent)), None)
