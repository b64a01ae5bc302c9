"""The envelope of every event, its id, and the registry of payloads by event name."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b
from typing import Final, NamedTuple

from windowpane.core.events.annotations import (
    CallsCopied,
    NoteAdded,
    NoteDeleted,
    SessionContinued,
    SessionIdentified,
    SessionTitled,
)
from windowpane.core.events.compression import (
    ContentCompressed,
    FidelityEvaluated,
    RulesFollowed,
)
from windowpane.core.events.content import (
    BlockAdded,
    BlocksEvicted,
    BlocksReferenced,
    HistoryRewound,
    ReplyDiscarded,
    StaticContentRemoved,
)
from windowpane.core.events.derived import (
    AlertFired,
    AlertResolved,
    CacheBroken,
    CompactionMeasured,
    ContentRegretted,
    MisstepObserved,
    NotificationDelivered,
    NotificationFailed,
    PressureMeasured,
    VelocitySpiked,
    ZoneChanged,
)
from windowpane.core.events.facts import (
    BreakerOpened,
    BudgetBlocked,
    BudgetWarned,
    ChangeUnidentified,
    CheckpointLoaded,
    CheckpointRejected,
    CheckpointSaved,
    HistoryRepaired,
    LimitChanged,
    NoteWritten,
    OverflowDetected,
    QuotaMeasured,
    SessionDescribed,
    SessionEnded,
    SessionIncomplete,
    SessionRederived,
    SessionStarted,
    SubagentDelegated,
    SubagentReturned,
    TelemetryDropped,
    TotalsStated,
    TurnEnded,
    TurnStarted,
    UsageRejected,
    WindowRolled,
)
from windowpane.core.fast_dataclass import FastDataclass

SCHEMA: Final = 1
"""Version of the event schema written by this release."""

_CROCKFORD: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS: Final = tuple(high + low for high in _CROCKFORD for low in _CROCKFORD)
"""All pairs of digits, to convert two at a time."""


Fact = (
    SessionStarted
    | SessionEnded
    | TurnStarted
    | TurnEnded
    | BlockAdded
    | BlocksReferenced
    | BlocksEvicted
    | ReplyDiscarded
    | StaticContentRemoved
    | ContentCompressed
    | FidelityEvaluated
    | RulesFollowed
    | BudgetWarned
    | BudgetBlocked
    | NoteWritten
    | SubagentDelegated
    | SubagentReturned
    | CheckpointSaved
    | CheckpointLoaded
    | CheckpointRejected
    | WindowRolled
    | OverflowDetected
    | HistoryRepaired
    | QuotaMeasured
    | UsageRejected
    | LimitChanged
    | TotalsStated
    | BreakerOpened
    | ChangeUnidentified
    | SessionIncomplete
    | SessionRederived
    | TelemetryDropped
    | SessionDescribed
    | HistoryRewound
    | NoteAdded
    | NoteDeleted
    | SessionTitled
    | SessionIdentified
    | CallsCopied
    | SessionContinued
)
Derived = (
    PressureMeasured
    | ZoneChanged
    | VelocitySpiked
    | CompactionMeasured
    | ContentRegretted
    | MisstepObserved
    | AlertFired
    | AlertResolved
    | NotificationDelivered
    | NotificationFailed
    | CacheBroken
)
Payload = Fact | Derived

PAYLOADS: Final[dict[str, type[Payload]]] = {
    payload.type: payload for payload in (*Fact.__args__, *Derived.__args__)
}
"""Payload classes by event name."""


class EventContext(FastDataclass, frozen=True):
    """The fields that all events of one turn share; the writer flattens them into each event."""

    session_id: str
    """One agent conversation; `gen_ai.conversation.id` in OpenTelemetry."""
    agent: str
    """Name of the agent, as configured."""
    model: str
    """Model of the turn's call, as the provider names it; empty when unknown."""
    turn: int
    """Turn of the session, from 1; 0 before the first turn."""
    window_id: int
    """Context window of the session, from 1."""
    source: str
    """Origin of the facts: `live`, `demo`, or the name of a recording's format."""
    stream_id: str
    """Id of the emitter; together with `n` it identifies an event."""
    parent_session_id: str | None = None
    """Id of the session that delegated to this one."""
    trace_id: str | None = None
    """OpenTelemetry trace of the turn, 32 hexadecimal digits."""
    span_id: str | None = None
    """OpenTelemetry span of the turn, 16 hexadecimal digits."""


class Event(NamedTuple):
    """One immutable fact about one session."""

    context: EventContext
    n: int
    """Number of the event in its stream, from 0; a gap shows that events were dropped."""
    at: float | None
    """Seconds since the epoch, UTC; None in recordings without times."""
    data: Payload

    @property
    def event_id(self) -> str:
        """A ULID computed from stream, number and time, so that importing twice yields the same events."""
        return event_id(self.context.stream_id, self.n, self.at)

    @property
    def type(self) -> str:
        """Name of the event, such as `block.added`."""
        return self.data.type


def event_id(stream_id: str, n: int, at: float | None) -> str:
    """Return the ULID of event *n* of *stream_id*: milliseconds, then 80 bits of a digest, not random ones.

    Within a stream the bits increase by *n*, as the specification requires for ids of one millisecond.
    Source: the ULID specification (48 bits of time, 80 of entropy, Crockford's base 32).
    """
    value = _entropy(stream_id) + n
    return f"{_time_digits(at)}{_high_digits(value >> 20)}{_PAIRS[value >> 10 & 1023]}{_PAIRS[value & 1023]}"


def event_ids(events: Iterable[Event]) -> list[str]:
    """Return the ids of *events*."""
    return [event_id(context.stream_id, n, at) for context, n, at, _ in events]


@lru_cache(maxsize=256)
def _entropy(stream_id: str) -> int:
    """Return the first 80 bits of a stream; the highest bit is 0, so that counting never overflows."""
    return int.from_bytes(blake2b(stream_id.encode("utf-8", "replace"), digest_size=10).digest(), "big") >> 1


@lru_cache(maxsize=64)
def _high_digits(value: int) -> str:
    """Twelve digits of base 32: the upper 60 of the 80 bits, equal for a million events of a stream."""
    pairs = _PAIRS
    return (
        f"{pairs[value >> 50]}{pairs[value >> 40 & 1023]}{pairs[value >> 30 & 1023]}"
        f"{pairs[value >> 20 & 1023]}{pairs[value >> 10 & 1023]}{pairs[value & 1023]}"
    )


@lru_cache(maxsize=64)
def _time_digits(at: float | None) -> str:
    """Ten digits of base 32: the 48 bits of the milliseconds, often equal within a turn."""
    time, pairs = int(max(at or 0.0, 0.0) * 1000) & (1 << 48) - 1, _PAIRS
    return (
        f"{pairs[time >> 40]}{pairs[time >> 30 & 1023]}{pairs[time >> 20 & 1023]}"
        f"{pairs[time >> 10 & 1023]}{pairs[time & 1023]}"
    )
