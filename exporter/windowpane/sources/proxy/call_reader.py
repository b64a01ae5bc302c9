"""The calls that passed through the proxy, read and recorded in their conversations."""

from __future__ import annotations

import json
import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import httpx2

from windowpane.core.agents import STATED_BY_PROXY
from windowpane.core.same_session import call_number
from windowpane.effects.error_boundary import ErrorBoundary
from windowpane.models.wire.calls import ApiCall, Shape
from windowpane.models.wire.messages import field_of
from windowpane.models.wire.replies import Reply
from windowpane.models.wire.responses import ADDITIONAL_TOOLS
from windowpane.sources.clients.recording import CallRecord
from windowpane.sources.conversations.conversation_keys import MODEL_ROLES, MessageBlocks, first_message
from windowpane.sources.conversations.conversations import Scope
from windowpane.sources.proxy.agent_sessions import recorded_session
from windowpane.sources.proxy.call_messages import CallMessage, EndedCall, FailedCall, SentCall
from windowpane.sources.proxy.recorded_sessions import RecordedSessions, SessionIds
from windowpane.sources.transcripts.formats.exchanges.bodies import read_call, read_response
from windowpane.sources.transcripts.json_lines import mapping, sequence

if TYPE_CHECKING:
    from windowpane.outputs.runtime.current import RunningOutputs

MAXIMUM_ERROR_BYTES: Final = 64 << 10
MAXIMUM_OPEN_CALLS: Final = 10_000
"""Calls without an end; beyond it the oldest is dropped, whose end did not come."""
MAXIMUM_STATED_SESSIONS: Final = 1_000
"""Sessions stated by agents that are remembered, the latest."""
SOURCE: Final = "proxy"
"""The source of the events."""
_FIRST_FAILURE: Final = 400
"""Status codes from here on are failures."""

boundary: Final = ErrorBoundary(logging.getLogger("windowpane"))


class UpstreamError(Exception):
    """The provider answered with an error, or not at all; the message is its status and text."""


class SentBody:
    """A call as the bytes of its request."""

    def __init__(self, message: SentCall) -> None:
        self._message: SentCall | None = message
        self.api: Final = message.api
        self.shape: Shape = message.api
        self.is_read = False
        """The body was a call."""
        self.needs_ids = False
        """Only ids in its reply can show that another source records its session too."""
        self._request: dict[str, Any] | None = None

    @property
    def request(self) -> dict[str, Any]:
        """The body. Raises `ValueError` or `TypeError` for one that is not a JSON object."""
        if self._request is None:
            assert self._message is not None
            request = json.loads(decoded(self._message.encodings, self._message.body))
            if not isinstance(request, dict):
                raise TypeError(f"expected a JSON object as the request, got {type(request).__name__}")
            self._request = request
        return self._request

    def read(self) -> ApiCall:
        """Return the call. Raises `ValueError` or `TypeError` for a body that is not one."""
        assert self._message is not None
        call = read_call(self.api, self.request, uri=self._message.uri)
        self.is_read = True
        return call

    def release(self) -> None:
        """Drop the body."""
        self._message = self._request = None


class CallReader:
    """Reads the messages of passing calls in their order, on one thread. An unreadable call is logged."""

    def __init__(self, outputs: RunningOutputs, scope: Scope, recorded: RecordedSessions | None = None) -> None:
        """Use the sessions *recorded* by programs on this machine, for calls that state none."""
        self._outputs = outputs
        self._scopes = _Scopes(scope, recorded)
        self._open: OrderedDict[int, tuple[SentBody, CallRecord]] = OrderedDict()

    def read(self, message: CallMessage) -> None:
        """Record what a message states."""
        if isinstance(message, SentCall):
            with boundary.contain("observing a call"):
                self._start(message)
            return
        body, record = self._open.pop(message.number, (None, None))
        if body is None or record is None:  # its start was not read
            return
        with boundary.contain("observing a reply"):
            if isinstance(message, FailedCall):
                record.add_failure(UpstreamError(message.error), message.at, message.seconds)
            elif message.status >= _FIRST_FAILURE:
                error = UpstreamError(f"{message.status} {_error_text(message)}")
                record.add_failure(error, message.at, message.seconds)
            else:
                record.add_reply(message, partial(_read_reply, body), message.at, message.seconds)

    def _start(self, message: SentCall) -> None:
        body = SentBody(message)
        scope = self._scopes.of(message, body)
        is_stated = scope.session_id is not None or scope.parent_session_id is not None
        body.needs_ids = message.program is not None and not is_stated
        record = CallRecord(body, scope, self._outputs)
        self._open[message.number] = body, record
        if len(self._open) > MAXIMUM_OPEN_CALLS:
            self._open.popitem(last=False)
        record.start(message.at)


class _Scopes:
    """The scopes of calls: a session that an agent states has one, the same for each of its calls."""

    def __init__(self, default: Scope, recorded: RecordedSessions | None) -> None:
        self._default = replace(default, source=SOURCE)
        self._recorded = recorded
        self._stated: OrderedDict[str, Scope] = OrderedDict()

    def of(self, message: SentCall, body: SentBody) -> Scope:
        """Return the scope of a call.

        A call without tools, such as the one that titles a session, is beside the agent's conversation: it never
        opens the stated session, but belongs to it.
        """
        if message.program is None:
            return self._default
        scope = replace(self._default, agent=message.program)
        ids = self._ids(message.program, message, body)
        if ids is None:
            return scope
        own_id = STATED_BY_PROXY + ids.session_id
        if not _sends_tools(body.request):
            return replace(scope, parent_session_id=own_id)
        parent = ids.parent_id and STATED_BY_PROXY + ids.parent_id
        stated = self._stated.setdefault(
            own_id, replace(scope, session_id=own_id, parent_session_id=parent or None)
        )
        self._stated.move_to_end(own_id)
        if len(self._stated) > MAXIMUM_STATED_SESSIONS:
            self._stated.popitem(last=False)
        return stated

    def _ids(self, program: str, message: SentCall, body: SentBody) -> SessionIds | None:
        """Return the session that a call states, or that its program records."""
        session_id = recorded_session(program, message.session, body.request)
        if session_id:
            parent_id = message.parent and recorded_session(program, message.parent, body.request)
            return SessionIds(session_id, parent_id)
        if self._recorded is None:
            return None
        call = body.read()
        resumes = any(field_of(message, "role") in MODEL_ROLES for message in call.messages)
        return self._recorded.of(program, _first_texts(call), resumes=resumes)


def _first_texts(call: ApiCall) -> list[str]:
    """Return the texts of a call's first message after the system prompt."""
    blocks = MessageBlocks(call).between(first := first_message(call.messages), first + 1)
    return [spec.text for message in blocks for spec in message if spec.text]


def _sends_tools(request: Mapping[str, Any]) -> bool:
    """Return whether a call sends tools: as a field, or within its input as Codex does."""
    items = sequence(request.get("input"))
    return bool(request.get("tools")) or any(mapping(item).get("type") == ADDITIONAL_TOOLS for item in items)


def decoded(encodings: Sequence[bytes], pieces: Sequence[bytes]) -> bytes:
    """Return the content of a body, by the values of its `Content-Encoding`."""
    content = b"".join(pieces)
    if not encodings:
        return content
    headers = [(b"content-encoding", value) for value in encodings]
    return httpx2.Response(200, headers=headers, content=content).content


def _read_reply(body: SentBody, message: EndedCall, _shape: Shape) -> Reply:
    if not body.is_read or not message.body:
        return Reply()
    reply = read_response(body.api, decoded(message.encodings, message.body).decode("utf-8", "replace"))
    if body.needs_ids and reply.parts:
        _check_ids(reply, body.api)
    return reply


def _check_ids(reply: Reply, api: str) -> None:
    """Report once that neither an agent nor its replies name the session that it records itself."""
    ids = (reply.response_id, *(part.tool_call_id for part in reply.parts))
    if not any(call_number(call_id) is not None for call_id in ids):
        boundary.warn_once(
            "no id",
            "the replies of %s have no unique ids and the agent states no session: one that is imported from its "
            "recording too counts twice. See docs/proxy.md",
            reply.model or api,
        )


def _error_text(message: EndedCall) -> str:
    if sum(map(len, message.body)) > MAXIMUM_ERROR_BYTES:
        return "error"
    try:
        return decoded(message.encodings, message.body).decode("utf-8", "replace")
    except httpx2.DecodingError:
        return "error"
