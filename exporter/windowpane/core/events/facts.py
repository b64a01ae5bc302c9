"""Facts about sessions, turns, budgets, checkpoints and limits, as a source recorded them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Final, Literal

from windowpane.core.fast_dataclass import FastDataclass
from windowpane.core.vocabulary import CountSource, LimitSource, TitleSource, Zone

REPORT_RANGE: Final = (0.5, 2.0)
"""A model's report of its budget is accepted within this ratio to the known count."""


class Usage(FastDataclass, frozen=True):
    """Tokens of one model call as the provider reported them."""

    input_tokens: int = 0
    """Input that was neither read from nor written to the prompt cache."""
    output_tokens: int = 0
    """All generated tokens, reasoning included."""
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    """Part of the output."""
    reasoning_retained: bool = False
    """True if the provider keeps the reasoning for the following calls until the tool loop ends."""
    hour_write_tokens: int = 0
    """Part of the cache writes that the provider keeps for an hour, at a higher price."""

    @classmethod
    def of_prompt(
        cls,
        prompt: int,
        output: int,
        *,
        cached: int = 0,
        written: int = 0,
        reasoning: int = 0,
        exclusive: bool = False,
    ) -> Usage:
        """Return the usage of a call in OpenAI's counts, where *prompt* includes the cache.

        Some releases of LiteLLM, in front of Anthropic's models, do not include what was written to the cache, or
        neither that nor what was read; *exclusive* states the latter. A cache larger than the prompt shows it.
        """
        if exclusive or cached > prompt:
            return cls(prompt, output, cached, written, reasoning)
        rest = prompt - cached
        return cls(rest if written > rest else rest - written, output, cached, written, reasoning)

    def __add__(self, other: Usage) -> Usage:
        """Return the usage of both calls."""
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            self.reasoning_retained or other.reasoning_retained,
            self.hour_write_tokens + other.hour_write_tokens,
        )

    @property
    def input_total(self) -> int:
        """Tokens that the call sent: input, cache read and cache write; the actual size of the window."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens


@dataclass(frozen=True, slots=True)
class SessionStarted:
    """A session started, with these limits of its window."""

    type: ClassVar[str] = "session.started"
    limit_tokens: int | None = None
    limit_source: LimitSource | None = None
    reserved_tokens: int = 0
    margin_tokens: int = 0
    yellow_ratio: float = 0.50
    orange_ratio: float = 0.75
    red_ratio: float = 0.90
    task_digest: str | None = None
    earlier_compaction_tokens: int | None = None
    """Used tokens at which earlier sessions of this agent and model were compacted; None without a record."""
    earlier_base_tokens: int | None = None
    """Tokens that the provider counted beyond the recorded content in the first call of earlier sessions."""
    stated_compaction_tokens: int | None = None
    """Used tokens at which the agent compacts by its settings; 0 if it never does so by itself."""
    derived_by: str | None = None
    """Release of Windowpane that derived the events of a recording; None for a live session."""


@dataclass(frozen=True, slots=True)
class SessionRederived:
    """From here on another release of Windowpane derives the events of the recording, which is the same one."""

    type: ClassVar[str] = "session.rederived"
    release: str
    earlier_release: str
    """Release that derived the events before; empty where these do not state it."""
    skipped: int
    """Events of the release about the part that is stored, which are not."""


@dataclass(frozen=True, slots=True)
class SessionDescribed:
    """The names that people recognize a session by became known; each is one redacted line.

    An empty field was not stated and keeps its earlier value.
    """

    type: ClassVar[str] = "session.described"
    title: str = ""
    title_source: TitleSource | None = None
    folder: str = ""
    """The working directory."""
    repository: str = ""
    branch: str = ""
    """The git branch that was checked out."""
    agent_version: str = ""
    """Release of the agent's program."""
    label: str = ""
    """Any other name that users know it by, such as the id of a benchmark's task."""
    project: str = ""
    """Project that the session belongs to, by its name in the configuration."""


@dataclass(frozen=True, slots=True)
class TrendReport:
    """Summary of a finished session's window; tokens, ratios 0 to 1."""

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
    """Number of turns that ended in each zone."""


@dataclass(frozen=True, slots=True)
class SessionEnded:
    """A session ended, with the summary of its window."""

    type: ClassVar[str] = "session.ended"
    reason: str
    report: TrendReport | None = None


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """A turn started with its first block."""

    type: ClassVar[str] = "turn.started"


class TurnEnded(FastDataclass, frozen=True):
    """A model call returned and the turn ended."""

    type: ClassVar[str] = "turn.ended"
    usage: Usage | None
    """None without a report by the provider."""
    count_source: CountSource
    """`usage` when the size of this turn is the provider's count, else the source of the count."""
    cost_dollars: float | None = None
    latency_seconds: float | None = None
    stop_reason: str | None = None
    response_id: str | None = None
    """Id that the provider gave the reply: the same in every recording of the call."""
    recorded_output_tokens: int | None = None
    """The output that the recording states, where that is only the start of the reply; the one in `usage`, and
    with it the cost, is an estimate then."""
    list_cost_dollars: float | None = None
    """The cost by published prices, where the recording has another."""


@dataclass(frozen=True, slots=True)
class BudgetWarned:
    """A component exceeded the soft limit of its budget."""

    type: ClassVar[str] = "budget.warned"
    component: str
    used_tokens: int
    budget_tokens: int


@dataclass(frozen=True, slots=True)
class BudgetBlocked:
    """Content was stopped that would have exceeded the hard limit of its component's budget."""

    type: ClassVar[str] = "budget.blocked"
    component: str
    requested_tokens: int
    used_tokens: int
    budget_tokens: int
    action: str


@dataclass(frozen=True, slots=True)
class NoteWritten:
    """The agent or a strategy wrote a note that outlives the window."""

    type: ClassVar[str] = "note.written"
    category: str
    tokens: int
    digest: str


@dataclass(frozen=True, slots=True)
class SubagentDelegated:
    """A subtask was delegated to another session with a separate window."""

    type: ClassVar[str] = "subagent.delegated"
    child_session_id: str
    task_digest: str | None = None


@dataclass(frozen=True, slots=True)
class SubagentReturned:
    """A delegated subtask returned its result."""

    type: ClassVar[str] = "subagent.returned"
    child_session_id: str
    result_tokens: int
    outcome: str = "completed"


@dataclass(frozen=True, slots=True)
class CheckpointSaved:
    """A checkpoint of the task was saved; it outlives the window."""

    type: ClassVar[str] = "checkpoint.saved"
    version: int
    trigger: str
    size_bytes: int
    digest: str


@dataclass(frozen=True, slots=True)
class CheckpointLoaded:
    """A task was resumed from a checkpoint."""

    type: ClassVar[str] = "checkpoint.loaded"
    version: int
    age_seconds: float | None = None
    drift: int = 0
    """Number of environment facts that changed since the checkpoint."""


@dataclass(frozen=True, slots=True)
class CheckpointRejected:
    """A stale or corrupt checkpoint was not used."""

    type: ClassVar[str] = "checkpoint.rejected"
    version: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class WindowRolled:
    """The session continued in a new window."""

    type: ClassVar[str] = "window.rolled"
    reason: Literal["checkpoint", "clear"]
    from_window: int
    to_window: int
    tokens_before: int


@dataclass(frozen=True, slots=True)
class OverflowDetected:
    """The content did not fit into the window, or would not have fitted."""

    type: ClassVar[str] = "overflow.detected"
    where: Literal["proactive", "provider"]
    outcome: str
    """`reduced`, `retried`, `rolled` or `failed`; `rejected` for an observed call, which is never reduced."""
    used_tokens: int
    """Size that did not fit, before any reduction."""
    limit_tokens: int | None


@dataclass(frozen=True, slots=True)
class HistoryRepaired:
    """A broken history from outside was repaired before it was used."""

    type: ClassVar[str] = "history.repaired"
    repair: str
    count: int


@dataclass(frozen=True, slots=True)
class QuotaWindow:
    """One window of a plan's quota, such as five hours or seven days."""

    minutes: int
    """Length of the window."""
    used_ratio: float
    """Used part of the quota; may exceed 1."""
    resets_at: float
    """End of the window, in seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class QuotaMeasured:
    """The provider stated how much of the plan's quota is used; recorded when a whole percent changed."""

    type: ClassVar[str] = "quota.measured"
    windows: tuple[QuotaWindow, ...]
    plan: str = ""
    """Name of the plan; empty where it is not stated."""


@dataclass(frozen=True, slots=True)
class UsageRejected:
    """An impossible usage report was rejected."""

    type: ClassVar[str] = "usage.rejected"
    reported_tokens: int
    limit_tokens: int
    """0 for a window of unknown size."""
    reason: str
    """`above_limit` for a provider's total, `reported_drift` for what the model states of its budget."""
    expected_tokens: int | None = None
    """The count that a model's report was compared with."""

    @property
    def rule(self) -> str:
        """The rule by which the report was rejected, with its numbers."""
        limit = f"the window's {self.limit_tokens:,}" if self.limit_tokens else "the window's size"
        if self.reason == "above_limit":
            return f"one call cannot send more than {limit} tokens"
        low, high = REPORT_RANGE
        count = "" if self.expected_tokens is None else f", {self.expected_tokens:,} tokens"
        return f"a model's own report is used from {low:g} to {high:g} times our count{count}, and up to {limit}"


@dataclass(frozen=True, slots=True)
class TotalsStated:
    """The recording states totals of the whole session so far; they are those of no call and enter no sum."""

    type: ClassVar[str] = "totals.stated"
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_dollars: float | None = None


@dataclass(frozen=True, slots=True)
class LimitChanged:
    """The limits of the window changed: they are known better than before, or the model changed."""

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
    """The circuit breaker stopped reductions that made no progress."""

    type: ClassVar[str] = "breaker.opened"
    reason: str
    attempts: int


@dataclass(frozen=True, slots=True)
class ChangeUnidentified:
    """The provider's count changed more than the observed changes explain."""

    type: ClassVar[str] = "change.unidentified"
    tokens: int
    """Reported minus expected tokens, signed."""


@dataclass(frozen=True, slots=True)
class SessionIncomplete:
    """The recording is cut off or damaged; everything before is complete."""

    type: ClassVar[str] = "session.incomplete"
    reason: str
    line: int | None = None


@dataclass(frozen=True, slots=True)
class TelemetryDropped:
    """Events of this stream were dropped; explains a gap in `n`."""

    type: ClassVar[str] = "telemetry.dropped"
    first_n: int
    last_n: int
    reason: str
