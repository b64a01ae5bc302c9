"""The calls among the requests that pass through the proxy, and the bytes of both their bodies.

The event loop only takes references to the pieces as they pass. Everything else happens on the thread that reads
them. Of the headers only the encoding, the client program and the id of its session are retained.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from itertools import count
from typing import Final

from windowpane.sources.clients.bodies import MAXIMUM_BODY_BYTES
from windowpane.sources.proxy.agent_sessions import session_in_headers
from windowpane.sources.proxy.call_messages import CallMessages, EndedCall, FailedCall, SentCall
from windowpane.sources.transcripts.formats.exchanges.bodies import api_of_path

_PROGRAMS: Final = (
    (re.compile(rb"^claude-cli/"), "claude-code"),
    (re.compile(rb"^codex"), "codex"),
    (re.compile(rb"^GeminiCLI"), "gemini-cli"),
    (re.compile(rb"^(?:QwenCode|qwen-code)", re.IGNORECASE), "qwen-code"),
    (re.compile(rb"^opencode/"), "opencode"),
)
"""Starts of the `User-Agent` of known agents, and their names here."""
_numbers: Final = count(1)

Headers = Sequence[tuple[bytes, bytes]]


class Exchange:
    """One request and its response while they pass. No method raises."""

    def __init__(self, method: str, uri: str, headers: Headers, calls: CallMessages) -> None:
        self._api = api_of_path(uri) if method == "POST" else None
        self._uri = uri
        self._headers = headers
        self._calls = calls
        self._pieces: list[bytes] = []
        """Of the request until it was sent, then of the response."""
        self._size = 0
        self._status = 0
        self._encodings: list[bytes] = []
        self._number = 0
        """Number of the call that was passed on; 0 while the request is not sent and after its end."""
        self._sent_at = 0.0

    def add_sent(self, piece: bytes) -> None:
        """Retain a piece of the request."""
        if self._api is None:
            return
        self._size += len(piece)
        if self._size <= MAXIMUM_BODY_BYTES:
            self._pieces.append(piece)
        else:
            self._api, self._pieces = None, []

    def sent(self) -> None:
        """Pass on the request, which was sent whole."""
        if self._api is None:
            return
        api, self._api = self._api, None
        pieces, self._pieces, self._size = self._pieces, [], 0
        number, self._sent_at = next(_numbers), time.perf_counter()
        program = _program(self._headers)
        session, parent = session_in_headers(program, self._headers)
        encodings = _encodings(self._headers)
        message = SentCall(number, api, self._uri, program, session, encodings, pieces, time.time(), parent)
        if self._calls.put(message):
            self._number = number

    def answered(self, status: int, headers: Headers) -> None:
        """Record the status and the headers of the response."""
        self._status, self._encodings = status, _encodings(headers)

    def add_received(self, piece: bytes) -> None:
        """Retain a piece of the response."""
        if self._number:
            self._size += len(piece)
            if self._size <= MAXIMUM_BODY_BYTES:
                self._pieces.append(piece)
            else:
                self._pieces = []

    def ended(self) -> None:
        """Pass on the response, which ended, or whose client left before its end."""
        if self._number:
            pieces, self._pieces = self._pieces, []
            number, self._number = self._number, 0
            self._calls.put(
                EndedCall(number, self._status, self._encodings, pieces, time.time(), self._seconds())
            )

    def failed(self, error: BaseException) -> None:
        """Pass on that no response came back."""
        if self._number:
            number, self._number = self._number, 0
            self._calls.put(FailedCall(number, f"{type(error).__name__}: {error}", time.time(), self._seconds()))

    def _seconds(self) -> float:
        return time.perf_counter() - self._sent_at


def _encodings(headers: Headers) -> list[bytes]:
    return [value for name, value in headers if name.lower() == b"content-encoding"]


def _program(headers: Headers) -> str | None:
    agent = next((value for name, value in headers if name == b"user-agent"), b"")
    return next((name for pattern, name in _PROGRAMS if pattern.search(agent)), None)
