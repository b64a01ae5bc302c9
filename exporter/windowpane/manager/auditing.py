"""Which events are decisions, for the audit trail of a session."""

from __future__ import annotations

from typing import Final

from windowpane.core.events import (
    BlocksEvicted,
    BreakerOpened,
    BudgetBlocked,
    BudgetWarned,
    CheckpointLoaded,
    CheckpointRejected,
    CheckpointSaved,
    ContentCompressed,
    HistoryRepaired,
    NoteWritten,
    OverflowDetected,
    SubagentDelegated,
    SubagentReturned,
    UsageRejected,
    WindowRolled,
    ZoneChanged,
)

AUDITED_EVENTS: Final = 1_000
"""Decisions that a session remembers for its audit trail; the store has them all."""
AUDITED: Final = frozenset(
    payload.type
    for payload in (
        BlocksEvicted, BreakerOpened, BudgetBlocked, BudgetWarned, CheckpointLoaded, CheckpointRejected,
        CheckpointSaved, ContentCompressed, HistoryRepaired, NoteWritten, OverflowDetected, SubagentDelegated,
        SubagentReturned, UsageRejected, WindowRolled, ZoneChanged,
    )
)  # fmt: skip
