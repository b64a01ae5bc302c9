"""Every payload an event can carry, and the registry of their names."""

from __future__ import annotations

from typing import Final

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
