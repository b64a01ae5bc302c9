"""The envelope every event travels in, and the identity it derives from its place in a stream."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from typing import Final, NamedTuple

from windowpane.core.events.content import (
    BlockAdded,
    BlocksEvicted,
    BlocksReferenced,
    ContentCompressed,
    FidelityEvaluated,
)
from windowpane.core.events.derived import (
    AlertFired,
    AlertResolved,
    ContentRegretted,
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
    SessionEnded,
    SessionIncomplete,
    SessionStarted,
    SubagentDelegated,
    SubagentReturned,
    TelemetryDropped,
    TurnEnded,
    TurnStarted,
    UsageRejected,
    WindowRolled,
)
from windowpane.core.fast_dataclass import fast_dataclass

SCHEMA: Final = 1
"""Version of the event schema written by this release."""

_CROCKFORD: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS: Final = tuple(high + low for high in _CROCKFORD for low in _CROCKFORD)
"""Two digits at a time: half the steps."""


Fact = (
    SessionStarted
    | SessionEnded
    | TurnStarted
    | TurnEnded
    | BlockAdded
    | BlocksReferenced
    | BlocksEvicted
    | ContentCompressed
    | FidelityEvaluated
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
    | UsageRejected
    | LimitChanged
    | BreakerOpened
    | ChangeUnidentified
    | SessionIncomplete
    | TelemetryDropped
)
Derived = (
    PressureMeasured
    | ZoneChanged
    | VelocitySpiked
    | ContentRegretted
    | AlertFired
    | AlertResolved
    | NotificationDelivered
    | NotificationFailed
)
Payload = Fact | Derived

PAYLOADS: Final[dict[str, type[Payload]]] = {
    payload.type: payload for payload in (*Fact.__args__, *Derived.__args__)
}
"""Every payload by its event name."""


@fast_dataclass
class EventContext:
    """What all events of one turn share; held by reference, flattened only by the writer."""

    session_id: str
    """One agent conversation; `gen_ai.conversation.id` in OpenTelemetry."""
    agent: str
    """Name of the agent, as its owner gave it."""
    model: str
    """Model of the turn's call, as the provider names it; empty when unknown."""
    turn: int
    """Turn of the session, from 1; 0 before the first turn."""
    window_id: int
    """Context window of the session, from 1."""
    source: str
    """What produced the facts: `live`, `demo`, or the name of a recording's format."""
    stream_id: str
    """The emitter; together with `n` it identifies an event."""
    parent_session_id: str | None = None
    """The session that delegated to this one."""
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
        """A ULID that is a pure function of stream, number and time, so importing twice changes nothing."""
        return event_id(self.context.stream_id, self.n, self.at)

    @property
    def type(self) -> str:
        """The event's name, such as `block.added`."""
        return self.data.type


def event_id(stream_id: str, n: int, at: float | None) -> str:
    """The ULID of event *n* of *stream_id*: its milliseconds, then 80 bits that a digest gives instead of chance.

    Within a stream the bits count up by *n*, as the specification has it for ids of one millisecond.
    Source: the ULID specification (48 bits of time, 80 of entropy, Crockford's base 32).
    """
    value = _entropy(stream_id) + n
    return f"{_time_digits(at)}{_high_digits(value >> 20)}{_PAIRS[value >> 10 & 1023]}{_PAIRS[value & 1023]}"


@lru_cache(maxsize=256)
def _entropy(stream_id: str) -> int:
    """Where a stream's 80 bits begin; the highest bit is left free, so that counting never overflows."""
    return int.from_bytes(blake2b(stream_id.encode("utf-8", "replace"), digest_size=10).digest(), "big") >> 1


@lru_cache(maxsize=64)
def _high_digits(value: int) -> str:
    """Twelve digits of base 32: the upper 60 of the 80 bits. A stream's events share them by the million."""
    pairs = _PAIRS
    return (
        f"{pairs[value >> 50]}{pairs[value >> 40 & 1023]}{pairs[value >> 30 & 1023]}"
        f"{pairs[value >> 20 & 1023]}{pairs[value >> 10 & 1023]}{pairs[value & 1023]}"
    )


@lru_cache(maxsize=64)
def _time_digits(at: float | None) -> str:
    """Ten digits of base 32: the 48 bits of a ULID's milliseconds. A turn's events often share them."""
    time, pairs = int(max(at or 0.0, 0.0) * 1000) & (1 << 48) - 1, _PAIRS
    return (
        f"{pairs[time >> 40]}{pairs[time >> 30 & 1023]}{pairs[time >> 20 & 1023]}"
        f"{pairs[time >> 10 & 1023]}{pairs[time & 1023]}"
    )
