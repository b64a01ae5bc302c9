"""Model replies of all providers in one form: the parts that enter the window, and the usage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from windowpane.core.events import Usage
from windowpane.models.wire.messages import BlockSpec, call_spec, field_of, text_specs


@dataclass(frozen=True, slots=True)
class ReplyPart:
    """One piece of a reply."""

    kind: Literal["assistant_response", "thinking", "tool_call"]
    text: str
    """Text; for a tool call its arguments as JSON."""
    tool_call_id: str | None = None
    tool_name: str | None = None
    raw: Mapping[str, Any] | None = None
    """The provider's block, if it must be sent back byte for byte (signed thinking)."""


@dataclass(frozen=True, slots=True)
class ContextEdit:
    """An edit of the context that the provider made before the model saw it (Anthropic context management)."""

    kind: str
    """The provider's name of it, such as `clear_tool_uses_20250919`."""
    cleared_count: int
    """Tool uses, or turns of thinking, that were cleared."""


@dataclass(frozen=True, slots=True)
class Compaction:
    """A replacement of the conversation by a summary, made by the provider within a call."""

    summary: BlockSpec | None
    """The summary as it is sent back, without a text where it is encrypted; None if the provider made none."""
    usage: Usage | None = None
    """Tokens of making it, where they are counted apart from those of the reply that followed."""
    retained: tuple[BlockSpec, ...] = ()
    """Content that stays in front of the summary."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's reply in provider-neutral form."""

    parts: tuple[ReplyPart, ...] = ()
    usage: Usage | None = None
    model: str = ""
    stop_reason: str | None = None
    cost_dollars: float | None = None
    latency_seconds: float | None = None
    unread: tuple[str, ...] = field(default=())
    """Kinds of content that do not enter the window."""
    response_id: str = ""
    """The provider's id of the reply."""
    edits: tuple[ContextEdit, ...] = ()
    """Edits of the context that the provider applied to the call."""
    compaction: Compaction | None = None
    """The last compaction that the provider made within the call."""
    window_tokens: int | None = None
    """Size of the window where the input of the usage is another: a sum of several runs; 0 if it is unknown."""
    advisors: tuple[tuple[str, Usage], ...] = ()
    """Models that the call consulted, each with its usage, which is billed in addition to the call's."""


class ReplyAssembler(Protocol):
    """Assembles one reply from its pieces, in order."""

    def add(self, piece: object) -> None:
        """Add one chunk or event."""
        ...

    def reply(self) -> Reply:
        """Return the reply as far as its pieces have come."""
        ...


class FailedReplyError(Exception):
    """The provider reported an error in the reply itself; the message is the provider's."""


def raise_for_error(piece: object) -> None:
    """Raise `FailedReplyError` for an event or a document that reports an error instead of content."""
    error = field_of(piece, "error")
    if error is None and field_of(piece, "type") == "error":
        error = piece
    if error and field_of(piece, "type") in (None, "error"):
        code = field_of(error, "code") or field_of(error, "type")
        raise FailedReplyError(f"{code or 'error'}: {field_of(error, 'message') or error}")


def reply_parts(specs: Iterable[BlockSpec]) -> list[ReplyPart]:
    """Return the parts of a reply that was read as a message; blocks of other types are omitted."""
    return [
        ReplyPart(spec.content_type, spec.text or "", spec.tool_call_id, spec.tool_name)
        for spec in specs
        if spec.content_type in ("assistant_response", "thinking", "tool_call")
    ]


def reply_blocks(reply: Reply) -> list[BlockSpec]:
    """Return the blocks of a reply, with the keys they will have when they are sent back."""
    specs: list[BlockSpec] = []
    for part in reply.parts:
        if part.kind == "tool_call":
            specs.append(call_spec(part.tool_call_id, part.tool_name, part.text))
        else:
            specs += text_specs(part.kind, part.text)
    return specs


def made_summary(specs: Sequence[BlockSpec]) -> BlockSpec | None:
    """Return the last summary of a provider among the blocks of a message."""
    return next((spec for spec in reversed(specs) if spec.content_type == "summary"), None)
