"""The records that readers yield: plain statements of what a recording holds, in its order.

Records have no token counts, window state or ids of Windowpane; `playback` plays them into a
`SessionTracker`, which adds these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from windowpane.core.events import QuotaMeasured, Usage
from windowpane.core.fast_dataclass import FastDataclass
from windowpane.core.vocabulary import ContentType

if TYPE_CHECKING:
    from windowpane.core.names import Description
    from windowpane.models.wire.calls import ApiCall
    from windowpane.models.wire.messages import BlockSpec
    from windowpane.models.wire.replies import Reply


@dataclass(frozen=True, slots=True)
class SessionOpened:
    """The session of all records up to the next of these. Repeated to switch back to a session."""

    session_key: str
    """Unique within the format; becomes the session id, prefixed by the format where it is not already unique."""
    agent: str
    model: str = ""
    parent_key: str | None = None
    """The session that delegated to it."""
    limit_tokens: int | None = None
    """The window's size, where the recording states it."""
    at: float | None = None
    agent_version: str = ""
    """Release of the agent's program."""
    folder: str = ""
    """The folder in which it started, where its settings may be."""


class ContentAdded(FastDataclass, frozen=True):
    """One piece of content that entered the window."""

    content_type: ContentType
    text: str | None
    """None where the recording redacts or encrypts it."""
    tool_call_id: str | None = None
    tool_name: str | None = None
    media: int = 0
    """Images or documents in it, counted at a flat rate each."""
    tokens: int | None = None
    """As the recording states them; None where it does not."""
    key: str = ""
    """The id in the recording, for `ContentRemoved.keys` and `Compacted.kept_keys`."""
    at: float | None = None
    child_key: str | None = None
    """The session this result was delegated to, if any."""
    memory_file: str | None = None
    """The path of the file that injected content is from, where its text does not start with it."""

    @classmethod
    def of(cls, spec: BlockSpec, at: float | None) -> ContentAdded:
        """Return the record of a block that was sent or received at *at*."""
        return cls(spec.content_type, spec.text, spec.tool_call_id, spec.tool_name, spec.media, at=at)


class NextCall(NamedTuple):
    """The call after another one in the same turn of the user: what it sent shows the size of the reply."""

    input_tokens: int
    """Its total."""
    added: tuple[ContentAdded, ...]
    """Content that it sent besides the reply, new since the call before it."""


class ModelCalled(FastDataclass, frozen=True):
    """A model call that came back; the content of its reply precedes this record."""

    usage: Usage | None
    model: str = ""
    cost_dollars: float | None = None
    latency_seconds: float | None = None
    stop_reason: str | None = None
    at: float | None = None
    response_id: str | None = None
    """Id that the provider gave the reply, where the recording has it."""
    is_start: bool = False
    """The usage may be that of the start of the reply, whose output counts the first tokens only."""
    next_call: NextCall | None = None
    """None unless *is_start*, and where no call or a message of the user follows."""
    window_tokens: int | None = None
    """The size of the window where the input of the usage is another: the sum of several runs."""
    advisors: tuple[tuple[str, Usage], ...] = ()
    """Models that the call consulted, each with its usage, which is billed in addition to the call's."""


@dataclass(frozen=True, slots=True)
class CallSent:
    """A model call, recorded with everything that it sent; its changes since the one before become the events."""

    call: ApiCall
    at: float | None = None


@dataclass(frozen=True, slots=True)
class ReplyReceived:
    """The reply to the last `CallSent`."""

    reply: Reply
    at: float | None = None


@dataclass(frozen=True, slots=True)
class CallFailed:
    """The end of the last `CallSent` without a reply."""

    error: str
    at: float | None = None


@dataclass(frozen=True, slots=True)
class ContentRemoved:
    """Content that the agent evicted by itself, such as old tool results."""

    keys: tuple[str, ...]
    """Tool call ids or content keys, including ones that the recording does not contain."""
    policy: str
    tokens_freed: int | None = None
    """As the recording states it."""
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Compacted:
    """A replacement of the conversation by a summary, made by the agent."""

    trigger: str
    tokens_before: int | None = None
    """Of the whole window, as the recording states it."""
    tokens_after: int | None = None
    summary: str | None = None
    kept_keys: tuple[str, ...] = ()
    """Keys of the content that was not replaced."""
    keep_last: int | None = None
    """Number of the last content records that were not replaced, where the recording counts them."""
    key: str = ""
    """The id of the summary in the recording, for `Rewound`."""
    duration_seconds: float | None = None
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Cleared:
    """A new, empty window that the user or agent started."""

    at: float | None = None


@dataclass(frozen=True, slots=True)
class LimitStated:
    """The size of the window, stated by the recording."""

    limit_tokens: int | None
    """None where what was stated no longer holds."""
    at: float | None = None


@dataclass(frozen=True, slots=True)
class QuotaStated:
    """The used part of the plan's quota, where it differs by a whole percent from the one before."""

    quota: QuotaMeasured
    at: float | None = None


@dataclass(frozen=True, slots=True)
class SessionDescribed:
    """The names that people recognize the session by, as the recording states them.

    An empty field is not stated; a later record replaces the fields that it states. The title from the first user
    message is made by the player, not by readers.
    """

    title: str = ""
    title_source: Literal["agent", "user"] = "agent"
    """The author of the title."""
    folder: str = ""
    """The working directory."""
    repository: str = ""
    branch: str = ""
    """The git branch that is checked out."""
    agent_version: str = ""
    label: str = ""
    """Any other name that users know the session by, such as the id of a benchmark's task."""
    project: str = ""
    """The project that it belongs to."""
    at: float | None = None

    def description(self) -> Description:
        """Return the names."""
        return {
            "title": self.title,
            "title_source": self.title_source,
            "folder": self.folder,
            "repository": self.repository,
            "branch": self.branch,
            "agent_version": self.agent_version,
            "label": self.label,
            "project": self.project,
        }


@dataclass(frozen=True, slots=True)
class Rewound:
    """The conversation continues after earlier content; what was added later left the window.

    Agents rewind, fork in place and roll back.
    """

    last_kept_key: str | None
    """`ContentAdded.key` of the content it continues after; None where it starts again. Content that was
    removed by an earlier rewind or a compaction returns."""
    at: float | None = None
    compactions: int = 0
    """Compactions since that content, which it undoes."""
    content_keys: tuple[str, ...] | None = None
    """Keys of all content that is in the window then, in order; None for the content up to *last_kept_key*."""


@dataclass(frozen=True, slots=True)
class TotalsStated:
    """Totals of the whole session so far, as the recording states them, of no single call."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_dollars: float | None = None
    at: float | None = None


@dataclass(frozen=True, slots=True)
class SessionClosed:
    """The end of the session, stated by the recording."""

    reason: str
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Broken:
    """A damaged or missing part of the recording; becomes `session.incomplete`."""

    reason: str
    line: int | None = None


Record = (
    SessionOpened
    | ContentAdded
    | ModelCalled
    | CallSent
    | ReplyReceived
    | CallFailed
    | ContentRemoved
    | Compacted
    | Cleared
    | LimitStated
    | QuotaStated
    | SessionDescribed
    | Rewound
    | TotalsStated
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
"""Failures that the formats name."""


def ending(status: str, *, finished: frozenset[str]) -> str:
    """Return how a run ended, in a bounded set of words, since a status may be any text.

    The result is *status* where it is one of *finished*, `error: …` for a failure that a format names, else
    `error: other`.
    """
    if status in finished:
        return status
    return f"error: {status}" if status in FAILURES else "error: other"
