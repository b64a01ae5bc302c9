"""What a reader of recordings yields, and what it reports.

A reader turns one format into `Record`s: plain statements of what the recording says, in order, without
token counts, window state or ids of ours. `sources.playback` plays them into a `SessionTracker`. A reader
never raises for a bad record: it notes a `Problem` with file and line and goes on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from windowpane.core.events import Usage
from windowpane.core.vocabulary import ContentType


@dataclass(frozen=True, slots=True)
class SessionOpened:
    """The records that follow, until the next of these, belong to this session. May come again to switch back."""

    session_key: str
    """Unique within the format; becomes the session id, prefixed by the format where it is not already unique."""
    agent: str
    model: str = ""
    parent_key: str | None = None
    """The session that delegated to it."""
    limit_tokens: int | None = None
    """Where the recording states its own window."""
    at: float | None = None


@dataclass(frozen=True, slots=True)
class ContentAdded:
    """One piece of content entered the window."""

    content_type: ContentType
    text: str | None
    """None where the recording has it redacted or encrypted."""
    tool_call_id: str | None = None
    tool_name: str | None = None
    media: int = 0
    """Images or documents in it, counted at a flat rate each."""
    tokens: int | None = None
    """Where the recording states them."""
    key: str = ""
    """The record's own id, for `ContentRemoved.keys`."""
    at: float | None = None
    child_key: str | None = None
    """The session that gave this result, where it was delegated to one."""


@dataclass(frozen=True, slots=True)
class ModelCalled:
    """A model call came back; its reply's content came before this record."""

    usage: Usage | None
    model: str = ""
    cost_dollars: float | None = None
    latency_seconds: float | None = None
    stop_reason: str | None = None
    at: float | None = None


@dataclass(frozen=True, slots=True)
class ContentRemoved:
    """The agent evicted content by itself, such as old tool results."""

    keys: tuple[str, ...]
    """Tool call ids or content keys; those never seen are legal."""
    policy: str
    tokens_freed: int | None = None
    """As the recording states it."""
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Compacted:
    """The agent replaced the conversation by a summary."""

    trigger: str
    tokens_before: int | None = None
    """Of the whole window, as the recording states it."""
    tokens_after: int | None = None
    summary: str | None = None
    kept_keys: tuple[str, ...] = ()
    """Content that stayed."""
    keep_last: int | None = None
    """How many of the last content records stayed, where the recording counts instead of naming."""
    duration_seconds: float | None = None
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Cleared:
    """The user or agent went on in a new, empty window."""

    at: float | None = None


@dataclass(frozen=True, slots=True)
class LimitStated:
    """The recording states the size of the window."""

    limit_tokens: int
    at: float | None = None


@dataclass(frozen=True, slots=True)
class SessionClosed:
    """The recording says that the session ended, and how."""

    reason: str
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Broken:
    """The recording of this session stops or breaks here; becomes `session.incomplete`."""

    reason: str
    line: int | None = None


Record = (
    SessionOpened
    | ContentAdded
    | ModelCalled
    | ContentRemoved
    | Compacted
    | Cleared
    | LimitStated
    | SessionClosed
    | Broken
)


FAILURES: Final = frozenset(
    {
        "APIConnectionError", "APIError", "AuthenticationError", "BadGatewayError", "BadRequestError",
        "ContentPolicyViolationError", "ContextWindowExceededError", "Exception", "FormatError",
        "InternalServerError", "JSONDecodeError", "KeyboardInterrupt", "NotFoundError", "PermissionDeniedError",
        "RateLimitError", "RepeatedFormatError", "RuntimeError", "ServiceUnavailableError", "Timeout",
        "TimeoutExpired", "UnprocessableEntityError", "UserInterruption", "ValueError",
        "agent_error", "exit_api", "exit_environment_error", "exit_error", "exit_forfeit", "exit_format",
        "infrastructure_error", "invalid_agent_message", "timeout", "too_many_errors", "unexpected_error",
        "unhandled_exception", "user_error",
    }
)  # fmt: skip
"""Ways to fail that the formats name."""


def ending(status: str, *, finished: frozenset[str]) -> str:
    """*status* where it is one of *finished*, `error: …` for a known failure, else `error: other`."""
    if status in finished:
        return status
    return f"error: {status}" if status in FAILURES else "error: other"
