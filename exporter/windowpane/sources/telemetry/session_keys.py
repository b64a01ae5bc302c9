"""The session that an assembled call belongs to, by the ids and names that its reports state."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, NamedTuple

from windowpane.sources.telemetry.reported_call import AssembledCall

MAXIMUM_CONVERSATIONS: Final = 20_000


class SessionKey(NamedTuple):
    """A session and the one it is part of."""

    key: str
    """Empty where only the messages of the call show its session."""
    parent_key: str | None = None


class SessionKeys:
    """Assigns calls to sessions: by conversation and agent, by messages, or by trace.

    The first agent that a conversation's calls name has the conversation's session, others a child session each.
    """

    def __init__(self) -> None:
        self._first_agents: OrderedDict[str, str] = OrderedDict()

    def of(self, assembled: AssembledCall) -> SessionKey:
        """Return the session of a call."""
        call = assembled.call
        if call.parent:
            return SessionKey(call.conversation, call.parent)
        if call.conversation:
            part = self._part(assembled)
            if part:
                return SessionKey(f"{call.conversation}/{part}", call.conversation)
            return SessionKey(call.conversation)
        if call.messages is not None:
            return SessionKey("")
        return SessionKey(assembled.trace_id or assembled.span_id)

    def _part(self, assembled: AssembledCall) -> str:
        """Return the part of its conversation that a call belongs to; empty for the conversation itself."""
        call = assembled.call
        if call.part or assembled.outer_agent:
            return call.part or assembled.enclosing_agent
        if not call.agent:
            return ""
        first = self._first_agents.setdefault(call.conversation, call.agent)
        if len(self._first_agents) > MAXIMUM_CONVERSATIONS:
            self._first_agents.popitem(last=False)
        return "" if call.agent == first else call.agent
