"""One model call as one span or one event reports it, and as the assembly of all reports about it gives it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from windowpane.core.events import Usage
from windowpane.models.wire.calls import ApiCall
from windowpane.models.wire.replies import Compaction, Reply, ReplyPart
from windowpane.models.wire.traced import Message


@dataclass(slots=True)
class ReportedCall:
    """A model call. What a report does not state is None or empty."""

    convention: str
    """The convention of its attributes."""
    model: str = ""
    messages: list[Message] | None = None
    system: Any = None
    tools: list[Any] | None = None
    reply: tuple[ReplyPart, ...] | None = None
    usage: Usage | None = None
    response_id: str = ""
    stop_reason: str | None = None
    cost_dollars: float | None = None
    error: str = ""
    conversation: str = ""
    parent: str = ""
    """The conversation that started this one; empty where none is stated."""
    agent: str = ""
    part: str = ""
    """The part of the conversation that has a separate window, such as a sub-agent; empty for the whole."""
    continues: str = ""
    """The stored response or conversation that the provider puts before the messages."""
    compaction: Compaction | None = None
    """The compaction of the provider that the reply holds."""
    is_compacted: bool = False
    """The call sends a compacted conversation, by its span."""
    window_tokens: int | None = None
    """The size of the model's window."""
    compaction_tokens: int | None = None
    """The level at which the agent compacts this conversation by its settings."""

    def complete(self, other: ReportedCall) -> None:
        """Take from *other* what this report does not state; the parts of a prompt only together.

        A report that names the sub-agent's conversation is more exact than one that names the session around it.
        """
        if other.parent and not self.parent:
            self.conversation, self.parent = other.conversation, other.parent
        if self.messages is None and other.messages is not None:
            self.messages, self.system, self.tools = other.messages, other.system, other.tools or self.tools
        for field in fields(self):
            if not getattr(self, field.name):
                setattr(self, field.name, getattr(other, field.name))


@dataclass(frozen=True, slots=True)
class ReportedCompaction:
    """A compaction that an agent reports: tokens of the whole window before and after."""

    trigger: str
    tokens_before: int | None
    tokens_after: int | None
    succeeded: bool = True
    duration_seconds: float | None = None


Position = tuple[int, int]
"""An item that was received: the number of its request, and its index in it."""


@dataclass(slots=True)
class AssembledCall:
    """One model call, with everything that was reported of it."""

    call: ReportedCall
    trace_id: str
    span_id: str
    started_at: float
    ended_at: float
    service: str = ""
    """The name of the process that made it."""
    enclosing_name: str = ""
    """The agent that the nearest span around the call names."""
    enclosing_agent: str = ""
    """The id of that span; empty without one."""
    outer_agent: str = ""
    """The id of the span around that which names another agent, whose sub-agent it then is."""
    positions: Sequence[Position] = ()
    """The items that reported it."""

    @property
    def agent(self) -> str:
        """The agent that made the call, else the process; empty where neither has a name."""
        return self.call.agent or self.enclosing_name or self.service

    def api_call(self, *, otherwise_continues: str) -> ApiCall:
        """Return the call as the observer reads it; without messages it continues the calls of that name."""
        call = self.call
        if call.messages is None:
            return ApiCall("chat", call.model, (), continues=otherwise_continues)
        return ApiCall(
            "chat",
            call.model,
            call.messages,
            call.system,
            call.tools,
            call.continues or None,
            is_compacted=call.is_compacted,
        )

    def reply(self) -> Reply | None:
        """Return the reply; None for a failed call."""
        call = self.call
        if call.error and call.usage is None and not call.reply:
            return None
        return Reply(
            call.reply or (),
            call.usage,
            call.model,
            call.stop_reason,
            call.cost_dollars,
            max(0.0, self.ended_at - self.started_at),
            response_id=call.response_id,
            compaction=call.compaction,
            window_tokens=0 if call.compaction is not None and call.reply else None,  # of which run is unknown
        )


@dataclass(slots=True)
class AssembledCompaction:
    """A compaction that an agent reports."""

    compaction: ReportedCompaction
    conversation: str
    agent: str
    started_at: float
    positions: Sequence[Position] = ()
    """The item that reported it."""


Assembled = AssembledCall | AssembledCompaction
