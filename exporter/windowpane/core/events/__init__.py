"""Everything that happens to a context window, as frozen, typed, versioned facts.

An `Event` is an envelope (session, turn, number, time) around one payload. Payloads are either facts that a
source saw or derived events that follow from them; metrics, alerts, the audit log, the timeline and replay are
all folds over this one stream. Serialisation lives in `windowpane.core.codec`.
"""

from __future__ import annotations

from typing import Final

from windowpane.core.events.content import (
    BlockAdded,
    BlocksEvicted,
    BlocksReferenced,
    Candidate,
    ContentCompressed,
    EvictedBlock,
    FactOutcome,
    FidelityEvaluated,
    Strategy,
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
from windowpane.core.events.envelope import SCHEMA, Event, EventContext, event_id
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
    TrendReport,
    TurnEnded,
    TurnStarted,
    Usage,
    UsageRejected,
    WindowRolled,
)

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

__all__ = [
    "PAYLOADS",
    "SCHEMA",
    "AlertFired",
    "AlertResolved",
    "BlockAdded",
    "BlocksEvicted",
    "BlocksReferenced",
    "BreakerOpened",
    "BudgetBlocked",
    "BudgetWarned",
    "Candidate",
    "ChangeUnidentified",
    "CheckpointLoaded",
    "CheckpointRejected",
    "CheckpointSaved",
    "ContentCompressed",
    "ContentRegretted",
    "Derived",
    "Event",
    "EventContext",
    "EvictedBlock",
    "Fact",
    "FactOutcome",
    "FidelityEvaluated",
    "HistoryRepaired",
    "LimitChanged",
    "NoteWritten",
    "NotificationDelivered",
    "NotificationFailed",
    "OverflowDetected",
    "Payload",
    "PressureMeasured",
    "SessionEnded",
    "SessionIncomplete",
    "SessionStarted",
    "Strategy",
    "SubagentDelegated",
    "SubagentReturned",
    "TelemetryDropped",
    "TrendReport",
    "TurnEnded",
    "TurnStarted",
    "Usage",
    "UsageRejected",
    "VelocitySpiked",
    "WindowRolled",
    "ZoneChanged",
    "event_id",
]
