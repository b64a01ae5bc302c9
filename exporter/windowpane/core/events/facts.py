"""Facts about sessions, turns, budgets, checkpoints and limits: what a source saw happen around a window."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from windowpane.core.fast_dataclass import fast_dataclass
from windowpane.core.vocabulary import CountSource, LimitSource, Zone


@dataclass(frozen=True, slots=True)
class Usage:
    """What the provider reported for one model call, in tokens."""

    input_tokens: int = 0
    """Input that was neither read from nor written to the prompt cache."""
    output_tokens: int = 0
    """Everything generated, reasoning included."""
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    """Part of the output."""

    @property
    def input_total(self) -> int:
        """What the call sent: input, cache read and cache write; the truth about the window."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens


@dataclass(frozen=True, slots=True)
class SessionStarted:
    """A session began; carries the window it began with."""

    type: ClassVar[str] = "session.started"
    limit_tokens: int | None = None
    limit_source: LimitSource | None = None
    reserved_tokens: int = 0
    margin_tokens: int = 0
    yellow_ratio: float = 0.50
    orange_ratio: float = 0.75
    red_ratio: float = 0.90
    task_digest: str | None = None


@dataclass(frozen=True, slots=True)
class TrendReport:
    """How a finished session's window developed; tokens, ratios 0 to 1."""

    turns: int
    peak_used_tokens: int
    peak_utilization: float | None
    final_used_tokens: int
    mean_added_tokens: float
    evicted_blocks: int
    compressions: int
    regrets: int
    cost_dollars: float | None
    zones: dict[Zone, int] = field(default_factory=dict)
    """Turns that ended in each zone."""


@dataclass(frozen=True, slots=True)
class SessionEnded:
    """A session ended, with the report of its window."""

    type: ClassVar[str] = "session.ended"
    reason: str
    report: TrendReport | None = None


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """A turn opened with its first block."""

    type: ClassVar[str] = "turn.started"


@fast_dataclass
class TurnEnded:
    """A model call came back."""

    type: ClassVar[str] = "turn.ended"
    usage: Usage | None
    """None when the provider reported none."""
    count_source: CountSource
    """`usage` when the window's size at this turn is the provider's, else how it was counted."""
    cost_dollars: float | None = None
    latency_seconds: float | None = None
    stop_reason: str | None = None


@dataclass(frozen=True, slots=True)
class BudgetWarned:
    """A component passed its soft limit."""

    type: ClassVar[str] = "budget.warned"
    component: str
    used_tokens: int
    budget_tokens: int


@dataclass(frozen=True, slots=True)
class BudgetBlocked:
    """A component would have passed its hard limit."""

    type: ClassVar[str] = "budget.blocked"
    component: str
    requested_tokens: int
    used_tokens: int
    budget_tokens: int
    action: str


@dataclass(frozen=True, slots=True)
class NoteWritten:
    """The agent or a strategy wrote a note that survives the window."""

    type: ClassVar[str] = "note.written"
    category: str
    tokens: int
    digest: str


@dataclass(frozen=True, slots=True)
class SubagentDelegated:
    """A subtask was handed to a session with a window of its own."""

    type: ClassVar[str] = "subagent.delegated"
    child_session_id: str
    task_digest: str | None = None


@dataclass(frozen=True, slots=True)
class SubagentReturned:
    """A delegated subtask came back with a result."""

    type: ClassVar[str] = "subagent.returned"
    child_session_id: str
    result_tokens: int
    outcome: str = "completed"


@dataclass(frozen=True, slots=True)
class CheckpointSaved:
    """Structured state was written that survives the window."""

    type: ClassVar[str] = "checkpoint.saved"
    version: int
    trigger: str
    size_bytes: int
    digest: str


@dataclass(frozen=True, slots=True)
class CheckpointLoaded:
    """A window resumed from a checkpoint."""

    type: ClassVar[str] = "checkpoint.loaded"
    version: int
    age_seconds: float | None = None
    drift: int = 0
    """Environment facts that no longer hold."""


@dataclass(frozen=True, slots=True)
class CheckpointRejected:
    """A checkpoint was stale or corrupt and was not used."""

    type: ClassVar[str] = "checkpoint.rejected"
    version: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class WindowRolled:
    """The session went on in a new window."""

    type: ClassVar[str] = "window.rolled"
    reason: Literal["checkpoint", "clear"]
    from_window: int
    to_window: int
    tokens_before: int


@dataclass(frozen=True, slots=True)
class OverflowDetected:
    """The window did not fit, or would not have."""

    type: ClassVar[str] = "overflow.detected"
    where: Literal["proactive", "provider"]
    outcome: str
    """`reduced`, `retried`, `rolled` or `failed`; `rejected` where the call was observed and nobody tried."""
    used_tokens: int
    """What did not fit: the size before anything was done about it."""
    limit_tokens: int | None


@dataclass(frozen=True, slots=True)
class HistoryRepaired:
    """A broken history from outside was mended before it was used."""

    type: ClassVar[str] = "history.repaired"
    repair: str
    count: int


@dataclass(frozen=True, slots=True)
class UsageRejected:
    """A usage report was impossible and was not believed."""

    type: ClassVar[str] = "usage.rejected"
    reported_tokens: int
    limit_tokens: int
    reason: str


@dataclass(frozen=True, slots=True)
class LimitChanged:
    """The size of the window is known better than before, or the model changed."""

    type: ClassVar[str] = "limit.changed"
    limit_tokens: int | None
    limit_source: LimitSource | None
    previous_tokens: int | None
    reserved_tokens: int = 0
    margin_tokens: int = 0
    yellow_ratio: float = 0.50
    orange_ratio: float = 0.75
    red_ratio: float = 0.90


@dataclass(frozen=True, slots=True)
class BreakerOpened:
    """A reduction was stopped because it made no progress."""

    type: ClassVar[str] = "breaker.opened"
    reason: str
    attempts: int


@dataclass(frozen=True, slots=True)
class ChangeUnidentified:
    """The provider's count moved in a way that no observed change explains."""

    type: ClassVar[str] = "change.unidentified"
    tokens: int
    """Signed: reported minus expected."""


@dataclass(frozen=True, slots=True)
class SessionIncomplete:
    """The recording stops or breaks in the middle; what was read before is whole."""

    type: ClassVar[str] = "session.incomplete"
    reason: str
    line: int | None = None


@dataclass(frozen=True, slots=True)
class TelemetryDropped:
    """Events of this stream were dropped, so a gap in `n` is explained."""

    type: ClassVar[str] = "telemetry.dropped"
    first_n: int
    last_n: int
    reason: str
