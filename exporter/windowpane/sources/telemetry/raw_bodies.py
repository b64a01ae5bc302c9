"""The bodies of Claude Code's calls (`OTEL_LOG_RAW_API_BODIES`), and its replies alone (`assistant_response`).

Its events of calls carry usage only. The bodies come in separate events, which hold them or name a file; a body
that was cut is not valid JSON and is not read. The response has the id of the call, and the request before it, of
the same part of the session, is that of the call.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Final

from windowpane.models.wire.anthropic import head, read_reply
from windowpane.models.wire.replies import ReplyPart
from windowpane.models.wire.traced import decoded
from windowpane.sources.telemetry.attributes import text_of
from windowpane.sources.telemetry.coding_agents import AgentEvent, session_of
from windowpane.sources.telemetry.records import Attributes
from windowpane.sources.telemetry.reported_call import ReportedCall

ReadFile = Callable[[str], str | None]
"""Returns the text of a file that an event names; None where it must not or cannot be read."""
MAXIMUM_BODIES: Final = 256
"""Calls whose bodies wait for the event that has their usage; beyond it the oldest are dropped."""
REQUEST: Final = "api_request_body"
RESPONSE: Final = "api_response_body"
TEXT: Final = "assistant_response"
_REDACTED: Final = "<REDACTED>"


class RawBodies:
    """The bodies that wait for the calls they belong to."""

    def __init__(self, read_file: ReadFile) -> None:
        self._read_file = read_file
        self._requests: OrderedDict[tuple[str, ...], Attributes] = OrderedDict()
        """The latest request of each part of a session that makes calls."""
        self._bodies: OrderedDict[str, list[tuple[str, Attributes]]] = OrderedDict()
        """Kinds and attributes of events, by the id of the call."""

    def add(self, event: AgentEvent) -> bool:
        """Retain an event of a body; returns False for any other event."""
        attributes = event.record.attributes
        if event.program != "claude_code" or event.kind not in (REQUEST, RESPONSE, TEXT):
            return False
        part = (
            session_of(event),
            text_of(attributes, "query_source"),
            text_of(attributes, "agent_id", "agent.id"),
        )
        if event.kind == REQUEST:
            self._requests[part] = attributes
            _drop_oldest(self._requests)
            return True
        held = self._bodies.setdefault(text_of(attributes, "request_id"), [])
        held.append((event.kind, attributes))
        if event.kind == RESPONSE and part in self._requests:
            held.append((REQUEST, self._requests.pop(part)))
        _drop_oldest(self._bodies)
        return True

    def complete(self, call: ReportedCall) -> None:
        """Add to a call of Claude Code what its bodies hold."""
        if not call.response_id or call.response_id not in self._bodies:
            return
        for kind, attributes in sorted(self._bodies.pop(call.response_id), key=lambda body: body[0] == TEXT):
            if kind == TEXT:
                text = attributes.get("response")
                if isinstance(text, str) and text and text != _REDACTED and call.reply is None:
                    call.reply = (ReplyPart("assistant_response", text),)
                continue
            body = self._body(attributes)
            if body is not None:
                (_complete_request if kind == REQUEST else _complete_reply)(call, body)

    def _body(self, attributes: Attributes) -> dict[str, Any] | None:
        """Return a body; None for one that is not there or was cut."""
        path, body = attributes.get("body_ref"), attributes.get("body")
        if isinstance(path, str):
            body = self._read_file(path)
        value = decoded(body)
        return value if isinstance(value, dict) else None


def _complete_request(call: ReportedCall, body: Mapping[str, Any]) -> None:
    messages = body.get("messages")
    if call.messages is None and isinstance(messages, list):
        system, tools = head(body)
        call.messages = [message for message in messages if isinstance(message, dict)]
        call.system = system if isinstance(system, str | list) else None
        call.tools = tools if isinstance(tools, list) else None


def _complete_reply(call: ReportedCall, body: Mapping[str, Any]) -> None:
    reply = read_reply(body)
    if call.reply is None:
        call.reply = tuple(part for part in reply.parts if part.text != _REDACTED)
        call.compaction = reply.compaction
    call.stop_reason = call.stop_reason or (reply.stop_reason if isinstance(reply.stop_reason, str) else None)


def _drop_oldest(held: OrderedDict[Any, Any]) -> None:
    if len(held) > MAXIMUM_BODIES:
        held.popitem(last=False)
