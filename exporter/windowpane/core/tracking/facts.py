"""Facts of one session: what happened to its window, as a source reports it or a program did it.

`SessionTracker` makes them, and `Conclusions` derives every event from them. No text is needed for that: what the
text of a block shows is among its marks. Times are seconds since the epoch, UTC; None where a recording has none.
"""

from __future__ import annotations

from typing import Literal

from windowpane.core.events import BlocksEvicted, ContentCompressed, Payload, Usage
from windowpane.core.fast_dataclass import FastDataclass
from windowpane.core.limits import WindowLimits
from windowpane.core.vocabulary import CacheBreakCause, Phase
from windowpane.core.window.blocks import Block


class SessionOpening(FastDataclass, frozen=True):
    """The session started."""

    at: float | None
    task_digest: str | None = None
    derived_by: str | None = None


class LimitSetting(FastDataclass, frozen=True):
    """The window has these limits from now on."""

    at: float | None
    limits: WindowLimits | None


class ModelChoice(FastDataclass, frozen=True):
    """The following calls go to this model, whose window has these limits."""

    at: float | None
    model: str
    limits: WindowLimits | None


class ProgramVersion(FastDataclass, frozen=True):
    """The agent's program is of this release."""

    version: str


class SpanChoice(FastDataclass, frozen=True):
    """The following facts belong to this OpenTelemetry span."""

    trace_id: str | None
    span_id: str | None


class TurnOpening(FastDataclass, frozen=True):
    """A turn started."""

    at: float | None


class CallOpening(FastDataclass, frozen=True):
    """A call started: it sends everything that is added up to its measurement, earlier replies included."""


class CallSending(FastDataclass, frozen=True):
    """The model is called with the window as it is; what is added later in the turn is its reply."""

    at: float | None


class WindowReading(FastDataclass, frozen=True):
    """The owner of the window needs its size."""

    at: float | None
    phase: Phase


class Addition(FastDataclass, frozen=True):
    """A block was added behind the others."""

    at: float | None
    block: Block


class Reference(FastDataclass, frozen=True):
    """The block *by* used identifiers that only *block_ids* hold."""

    at: float | None
    block_ids: tuple[str, ...]
    by: str


class Revision(FastDataclass, frozen=True):
    """The block replaces the one that it names, as the agent sends it."""

    at: float | None
    block: Block


class Discard(FastDataclass, frozen=True):
    """The agent no longer sends content: of a reply, or static content such as tool definitions."""

    at: float | None
    kind: Literal["reply", "static"]
    block_ids: tuple[str, ...]


class BlockEviction(FastDataclass, frozen=True):
    """A policy evicted blocks; *placeholders* replace some of them."""

    at: float | None
    eviction: BlocksEvicted
    placeholders: tuple[Block, ...] = ()
    window_tokens: int | None = None
    """Size of the window afterwards, where a recording reports it."""


class Rewind(FastDataclass, frozen=True):
    """The conversation continues after the block *last_kept*."""

    at: float | None
    abandoned: tuple[str, ...]
    last_kept: str | None
    restored: tuple[Block, ...] = ()
    """Blocks that return, each under a new id that `replaces` the old one."""


class Reduction(FastDataclass, frozen=True):
    """Content was replaced by less content, or an attempt to do so failed."""

    at: float | None
    compression: ContentCompressed
    results: tuple[Block, ...] = ()
    window_tokens: int | None = None
    """Size of the whole window afterwards, if the agent reported it; likewise before."""
    window_tokens_before: int | None = None
    in_place: bool = False
    """Each result takes the position of the block that it `replaces`; else all take that of the first removed."""


class Rollover(FastDataclass, frozen=True):
    """The session continues in a new window, which *carried* blocks open."""

    at: float | None
    reason: Literal["checkpoint", "clear"]
    carried: tuple[Block, ...] = ()


class SentChange(FastDataclass, frozen=True):
    """Blocks that were sent before changed, or *changed* was put in front of them."""

    cause: CacheBreakCause
    block_ids: tuple[str, ...]
    changed: str | None = None


class CallEnding(FastDataclass, frozen=True):
    """A model call returned, and the turn ended."""

    at: float | None
    usage: Usage | None = None
    """As recorded."""
    output_tokens: int | None = None
    """Estimate of the output where the usage reports only its start."""
    window_tokens: int | None = None
    """Size of the window where the input of the usage is another; 0 where it is unknown."""
    reported_tokens: int | None = None
    """Size of the call as the model itself reported it."""
    cost_dollars: float | None = None
    list_cost_dollars: float | None = None
    latency_seconds: float | None = None
    stop_reason: str | None = None
    response_id: str | None = None


class SessionEnding(FastDataclass, frozen=True):
    """The session ended."""

    at: float | None
    reason: str


class Statement(FastDataclass, frozen=True):
    """Anything else that was recorded; nothing is derived from it."""

    at: float | None
    payload: Payload


SessionFact = (
    SessionOpening
    | LimitSetting
    | ModelChoice
    | ProgramVersion
    | SpanChoice
    | TurnOpening
    | CallOpening
    | CallSending
    | WindowReading
    | Addition
    | Reference
    | Revision
    | Discard
    | BlockEviction
    | Rewind
    | Reduction
    | Rollover
    | SentChange
    | CallEnding
    | SessionEnding
    | Statement
)
