"""Results of a store: events with their position, and one frozen row per session, turn, block and alert."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windowpane.core.vocabulary import Component, ContentType, Severity, Zone


@dataclass(frozen=True, slots=True)
class RepeatedDay:
    """A session on one of the several rows of the trends that count it: of its days, models and releases."""

    session: int
    """A number that all rows of the session have, and no other session."""
    day: int
    agent: str
    model: str
    release: str
    peak: float | None
    """Highest utilization of the session on the day."""


if TYPE_CHECKING:
    from windowpane.core.events import Event


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event with its position in the store."""

    seq: int
    """Position in the whole store, ascending."""
    revision: int
    """Revision of the session the event belongs to, from 1."""
    counted: bool
    """False for the common prefix that a new revision repeats: its counters were counted already."""
    hash: str
    """Hexadecimal hash of this event, chained to the one before it in its session."""
    event: Event


@dataclass(frozen=True, slots=True)
class DamagedEvent:
    """An event whose stored bytes cannot be decoded, with the columns of its row."""

    seq: int
    revision: int
    hash: str
    session_id: str
    turn: int
    type: str
    at: float | None
    problem: str
    """The error of decoding the bytes."""


def intact_events(events: Iterable[StoredEvent | DamagedEvent]) -> list[StoredEvent]:
    """Return the events that are not damaged."""
    return [event for event in events if isinstance(event, StoredEvent)]


@dataclass(frozen=True, slots=True)
class SessionRow:
    """One session of the fleet: identity, extent and the last known gauges; tokens, seconds, dollars."""

    session_id: str
    revision: int
    agent: str
    model: str
    source: str
    parent_session_id: str | None
    started_at: float | None
    last_at: float | None
    ended: bool
    incomplete: bool
    turns: int
    """Ended turns."""
    exchanges: int
    events: int
    windows: int
    limit_tokens: int | None
    limit_source: str | None
    used_tokens: int
    peak_used_tokens: int
    utilization: float | None
    peak_utilization: float | None
    zone: Zone | None
    worst_zone: Zone | None
    velocity: float | None
    turns_until_red: float | None
    cost_dollars: float | None
    input_tokens: int
    """Sum of what the calls sent, cache included."""
    output_tokens: int
    cache_read_tokens: int
    evicted_blocks: int
    evicted_tokens: int
    compressions: int
    regrets: int
    overflows: int
    fidelity: float | None
    """Of the last compression; None when unknown."""
    firing: int
    """Number of alerts firing now."""
    worst_severity: Severity | None
    """Worst alert that ever fired."""
    last_event: str
    """Name of the last noteworthy event, such as `content.compressed`."""
    count_source: str | None = None
    """Source of `used_tokens`: `exact`, `usage` or `estimate`; None before the first measurement."""
    compaction_tokens: int | None = None
    """Used tokens at which the agent compacts by itself; None without evidence."""
    compaction_evidence: str | None = None
    turns_until_compaction: float | None = None
    cache_breaks: int = 0
    """Calls that sent more than half of a cached prefix as new input."""
    cache_break_tokens: int = 0
    cache_break_dollars: float | None = None
    """Their price above that of reading the prefix; None if unknown."""
    title: str = ""
    """One redacted line; empty where none is known."""
    title_source: str = ""
    """`agent`, `user` or `first_message`; empty without a title."""
    folder: str = ""
    """The working directory, as far as it is recorded; likewise the names below."""
    repository: str = ""
    branch: str = ""
    agent_version: str = ""
    label: str = ""
    compressions_in_task: int = 0
    """Compressions after which the agent went on with the same exchange: they hit in the middle of a task."""
    subagent_cost_dollars: float | None = None
    """Cost of its sub-agents and theirs; None where none is known."""
    project: str = ""
    """Empty where it belongs to none."""
    same_as: str = ""
    """Session that another source recorded, which counts for both; empty where this one counts."""
    estimated_outputs: int = 0
    """Calls whose output, and with it their cost, is an estimate."""
    copied_turns: int = 0
    """Turns copied from another session, which counts their calls: no sum of this one includes them."""
    stated_input_tokens: int | None = None
    """Total that the recording states of the whole session, of no single call; likewise the two below."""
    stated_output_tokens: int | None = None
    stated_cost_dollars: float | None = None

    @property
    def release(self) -> str:
        """The label, else the version of the agent's program; empty if neither is recorded."""
        return self.label or self.agent_version

    @property
    def is_cost_stated(self) -> bool:
        """The cost of no call is known, but the recording states a total."""
        return self.total_cost_dollars is None and self.stated_cost_dollars is not None

    @property
    def shown_cost_dollars(self) -> float | None:
        """The cost with that of the sub-agents; the stated total where no call has one."""
        return self.stated_cost_dollars if self.is_cost_stated else self.total_cost_dollars

    @property
    def total_cost_dollars(self) -> float | None:
        """The cost with that of the sub-agents; None where neither is known."""
        if self.subagent_cost_dollars is None:
            return self.cost_dollars
        return (self.cost_dollars or 0.0) + self.subagent_cost_dollars

    @property
    def name(self) -> str:
        """The name that people recognize the session by: its title, its label, or its agent."""
        return self.title or self.label or self.agent

    @property
    def cache_ratio(self) -> float | None:
        """Share of all input tokens that came from a prompt cache, 0 to 1; None without input."""
        return self.cache_read_tokens / self.input_tokens if self.input_tokens else None

    @property
    def is_estimated(self) -> bool:
        """Used tokens and utilization are estimates."""
        return self.count_source == "estimate"

    @property
    def is_cost_estimated(self) -> bool:
        """The output and the cost are estimates."""
        return self.estimated_outputs > 0


@dataclass(frozen=True, slots=True)
class FleetTotals:
    """Sums over all sessions that match a filter, however many are listed."""

    by_zone: dict[Zone | None, int]
    """Sessions in each zone that occurs; None for those without a known limit."""
    cost_dollars: float | None
    """None where no price is known."""
    input_tokens: int
    cache_read_tokens: int
    reached_red: int
    """Sessions that were red or in overflow at any time."""
    live: int
    live_needing_attention: int
    """Live sessions in red, red soon, or with a firing warning or critical alert."""
    live_critical: int
    """Live sessions whose worst firing alert is critical, and a warning below."""
    live_warned: int
    live_red: int
    live_red_soon: int
    """Live sessions below red that are expected there within three turns."""
    estimated_outputs: int = 0
    """Calls whose output, and with it their cost, is an estimate."""

    @property
    def sessions(self) -> int:
        """The number of sessions."""
        return sum(self.by_zone.values())

    @property
    def cache_ratio(self) -> float | None:
        """Share of all input tokens that came from a prompt cache, 0 to 1."""
        return self.cache_read_tokens / self.input_tokens if self.input_tokens else None


@dataclass(frozen=True, slots=True)
class TurnRow:
    """One turn of a session, with the measurement before the call and the final one."""

    turn: int
    window_id: int
    at: float | None
    model: str
    used_before: int | None
    used_after: int | None
    """None where nothing was reduced."""
    used_final: int | None
    count_source: str | None
    components: dict[Component, int]
    """Of the final measurement, else of the one before it."""
    limit_tokens: int | None
    usable_tokens: int | None
    red_tokens: int | None
    zone: Zone | None
    utilization: float | None
    velocity: float | None
    added_tokens: int
    turns_until_red: float | None
    turns_until_red_p10: float | None
    turns_until_red_p90: float | None
    burn_rate: float | None
    stale_tokens: int
    duplicate_tokens: int
    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    cost_dollars: float | None
    latency_seconds: float | None
    estimate_error: float | None
    compaction_tokens: int | None = None
    """Used tokens at which the agent compacts by itself; None without evidence."""
    turns_until_compaction: float | None = None
    turns_until_compaction_p10: float | None = None
    turns_until_compaction_p90: float | None = None
    recorded_output_tokens: int | None = None
    """The output that the recording states, where it is only the start of the reply: the other is an estimate."""
    list_cost_dollars: float | None = None
    """The cost by published prices, where the recording has another."""

    @property
    def is_cost_estimated(self) -> bool:
        """The output and the cost are estimates."""
        return self.recorded_output_tokens is not None

    @property
    def used_tokens(self) -> int | None:
        """Used tokens of the last measurement; None where the turn was not measured."""
        sizes = (self.used_final, self.used_after, self.used_before)
        return next((size for size in sizes if size is not None), None)


@dataclass(frozen=True, slots=True)
class BlockRow:
    """One block's life: when it was added to the window, when and why it was removed."""

    block_id: str
    content_type: ContentType
    tokens: int
    group: str
    exchange: int
    turn_added: int
    turn_removed: int | None
    """None while it is in the window."""
    window_id: int
    position: int
    """Order in the window."""
    removed_by: str | None
    """`eviction`, `compression`, `roll`, `replaced`; None while it is in the window."""
    reason: str
    """The policy's reason for removing it."""
    score: float | None
    replaced_by: str | None
    replaces: str | None
    last_referenced: int | None
    references: int
    regretted_turn: int | None
    """First turn in which it was needed again after its removal."""
    tool_name: str | None
    tool_call_id: str | None
    pinned: bool
    digest: str
    chars: int
    count_source: str
    preview: str | None
    """At most 80 characters, only where content was captured."""
    target: str | None = None
    """File or command of the tool call."""


@dataclass(frozen=True, slots=True)
class AlertRow:
    """One firing of one alert, from crossing to resolution."""

    session_id: str
    agent: str
    alert: str
    severity: Severity
    crossing_turn: int
    fired_turn: int
    fired_at: float | None
    resolved_turn: int | None
    resolved_at: float | None
    value: float | None
    threshold: float | None
    summary: str
    delivered: tuple[str, ...] = ()
    """Channels that delivered the message."""
    failed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolUse:
    """The content that one tool, with one file or command, put into windows."""

    tool: str
    target: str
    """File or command; empty where the call names none, and where all of a tool are summed."""
    blocks: int
    tokens: int
    """Tokens that entered the window; what replaced content, such as a placeholder, did not enter."""
    carried_tokens: int
    """Tokens times the calls that sent them."""
    dollars: float | None
    """Their share of what those calls cost; None if no cost is known."""
    sessions: int = 1


@dataclass(frozen=True, slots=True)
class Spending:
    """The cost of one session since a moment."""

    session_id: str
    agent: str
    """That of the session which it is a sub-agent of, where it is one."""
    project: str
    dollars: float
    root_session_id: str
    """The session that it is a sub-agent of, else its own."""


@dataclass(frozen=True, slots=True)
class NamedContent:
    """The content of one type and name in one session: of a tool, a skill or a memory file."""

    session: int
    """Number of the session in the store."""
    repository: str
    """Its repository or folder; empty where neither is recorded, and in the composition of one session."""
    content_type: ContentType
    tool: str
    """Empty for a memory file."""
    target: str
    """The skill, or the memory file; empty for other tools."""
    blocks: int
    tokens: int
    carried_tokens: int
    """Tokens times the calls that sent them."""
    dollars: float | None
    """Their share of what those calls cost; None if no cost is known."""


@dataclass(frozen=True, slots=True)
class Composition:
    """The named content of sessions."""

    content: tuple[NamedContent, ...]
    sessions: int
    """Sessions that were read."""
    in_range: int
    """Sessions that match; of more than 1,000 the latest are read."""
    repositories: tuple[str, ...] = ()
    """All repositories of the range, by name."""
    keys: tuple[int, ...] = ()
    """Row numbers of the sessions that match, the latest first."""


@dataclass(frozen=True, slots=True)
class TrendRow:
    """All sessions of one agent, model and release on one day (UTC); tokens, dollars, ratios 0 to 1."""

    day: int
    """Days since the epoch."""
    agent: str
    model: str
    release: str
    """The session's label, else the version of the agent's program; empty if neither is recorded."""
    sessions: int
    """Sessions with an event on the day; one that changes its model counts for each."""
    calls: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cost_dollars: float
    compactions: int
    fidelity_sum: float
    fidelities: int
    """Evaluated compressions, which `fidelity_sum` is the sum of."""
    regrets: int
    cache_breaks: int
    cache_break_dollars: float
    peak_sum: float
    peaks: int
    """Sessions of the day with a known utilization, whose highest ones `peak_sum` is the sum of."""
    red_sessions: int
    """Sessions whose utilization reached 0.90 on the day."""
    estimated_outputs: int = 0
    """Calls whose output, and with it their cost, is an estimate."""


@dataclass(frozen=True, slots=True)
class ImportOutcome:
    """The result of storing a recorded session."""

    session_id: str
    revision: int
    appended: int
    """Events that are new in the store."""
    unchanged: int
    """Events that were stored already."""
    revised: bool
    """The recording's past had changed, so a new revision was started."""
    is_shorter: bool = False
    """The recording has another past and fewer turns than the store, which keeps what it has."""
    turns: int = 0  # ended, of the stored session
    stated_id: str = ""
    """The id that the recording states, where another session is stored under it."""


@dataclass(frozen=True, slots=True)
class BrokenLink:
    """The first event of a session whose hash is wrong, another break of a chain, or a row unlike its events."""

    session_id: str
    """Empty for what belongs to no session."""
    revision: int
    seq: int | None
    """Number of the event; None where the break is not at one."""
    problem: str


@dataclass(frozen=True, slots=True)
class Accepted:
    """One time that the owner of a store accepted what it held without a key, as its entry records it."""

    at: float
    key: str
    """Id of the key that signed."""
    events: int
    """Events recorded without a key."""


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of verifying the audit chain."""

    keyed: bool
    """True when the chain uses a key and so detects tampering, not only accident."""
    sessions: int
    events: int
    broken: tuple[BrokenLink, ...] = ()
    explained_gaps: int = 0  # gaps in `n` that `telemetry.dropped` accounts for
    sender_gaps: int = 0  # other gaps in what other hosts sent: those events never arrived here
    unkeyed_events: int = 0
    """Of a keyed chain, events that were recorded without its key and accepted: proven only from then on."""
    accepted: tuple[Accepted, ...] = ()
    """The times at which the owner of the store accepted them."""
    exported_heads: int | None = None
    """Exported heads the chain was compared with; None without an export."""
    projections: bool = False
    """True when the rows that pages read were compared with the events."""

    @property
    def intact(self) -> bool:
        """Every hash of the chain is right, and every row that was compared is what its events give."""
        return not self.broken


@dataclass(frozen=True, slots=True)
class StoreSize:
    """Amount stored, in events, sessions, texts and bytes."""

    events: int
    sessions: int
    bytes: int
    contents: int = 0
    """Texts stored by content capture."""
