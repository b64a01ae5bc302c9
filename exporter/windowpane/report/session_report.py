"""The content of a report, read from the store once and rendered as text, JSON or HTML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from itertools import islice, pairwise
from operator import attrgetter
from typing import Final

from windowpane.core.events import (
    BlocksEvicted,
    CompactionMeasured,
    ContentCompressed,
    ContentRegretted,
    FidelityEvaluated,
    HistoryRewound,
    LimitChanged,
    RulesFollowed,
    SessionStarted,
)
from windowpane.core.times import is_live
from windowpane.core.tracking.peak import limits_of
from windowpane.core.vocabulary import REWOUND, UNKNOWN_CAUSE, ZONES, Component, RuleFate, Zone, severity
from windowpane.report.calls import ended_turns, open_turn, worst_turn
from windowpane.report.composition import NAME_KINDS, NamedCost, NameKind, costs_by_name
from windowpane.report.context_health import NO_MISSTEPS, SessionMissteps, missteps_of, read_session_health
from windowpane.report.cost_causes import CostCause, cost_causes
from windowpane.report.findings import Finding, findings, read_evidence
from windowpane.report.forecast_record import NO_FORECASTS, ForecastRecord, compaction_turns, forecast_record
from windowpane.report.headline import FactTotals, largest_again, sentence, session_phrases
from windowpane.report.regrowth import Regrowth, read_regrowth
from windowpane.report.rule_survival import ReportedRules, reported_rules
from windowpane.store.filters import AlertFilter, EventFilter, SessionFilter
from windowpane.store.reads.notes import NOTE_EVENTS, Note, notes_of
from windowpane.store.reads.project_reader import EventReader
from windowpane.store.records import (
    AlertRow,
    DamagedEvent,
    SessionRow,
    StoredEvent,
    ToolUse,
    TurnRow,
    intact_events,
)
from windowpane.text import formats
from windowpane.text.events import regretted_name
from windowpane.text.losses import faults_of, worst_texts

MAXIMUM_RECORDS: Final = 8
"""Other records of the session that a report names."""
MAXIMUM_EVENTS: Final = 500
"""Largest number of events of each kind that a report reads; totals come from the session's row."""
MAXIMUM_REGROWN: Final = 50
"""Compressions, the first, after which the regrowth is read."""
MAXIMUM_FACTS: Final = 10
"""Lost facts that are listed."""


@dataclass(frozen=True, slots=True)
class ReportedEviction:
    """One eviction, summed over its blocks."""

    turn: int
    policy: str
    blocks: int
    tokens_removed: int
    tokens_freed: int
    reason: str
    """The most frequent reason among its blocks, or that the cause is unknown."""

    @property
    def counted(self) -> str:
        """The number of its blocks as `3 items`; unknown where only the tokens are recorded."""
        return formats.count(self.blocks, "item") if self.blocks else formats.UNKNOWN

    @property
    def text(self) -> str:
        """The removal and its reason: `3 items removed: masked`, `63,218 tokens removed: cause unknown`."""
        removed = self.counted if self.blocks else f"{formats.tokens(self.tokens_removed)} tokens"
        return f"{removed} removed: {self.reason}" if self.reason else f"{removed} removed"


@dataclass(frozen=True, slots=True)
class ReportedCompression:
    """One compression with its evaluation."""

    turn: int
    strategy: str
    trigger: str
    outcome: str
    tokens_before: int
    tokens_after: int
    scope: str
    ratio: float | None
    """Tokens of the replaced content / tokens of its replacement; None where they were not recorded."""
    fidelity: float | None
    facts: FactTotals | None
    note: str
    """Reason for a missing fidelity score, or for the rejection."""
    cost_dollars: float | None = None
    """Price of the model calls that made it, which the cost of the session contains."""
    window_before: int | None = None
    """Tokens of the whole window by the provider's total before, and after; None where they are not known."""
    window_after: int | None = None
    faults: tuple[str, ...] = ()
    """Faults that were found in the replacement."""
    unmeasured: tuple[str, ...] = ()
    """Facts that could not be measured, with the reason."""
    worst: tuple[str, ...] = ()
    """The facts that were contradicted and lost, the worst first, where their text is captured."""
    needed_again: tuple[str, ...] = ()
    """Content that was removed and fetched again: `src/api.py at turn 57`."""
    regrowth: Regrowth | None = None
    """The window after it; only of accepted compactions."""

    @property
    def is_compaction(self) -> bool:
        """It replaced the conversation, and was accepted."""
        return self.strategy == "compaction" and self.outcome == "accepted"

    @property
    def sizes(self) -> tuple[int, int, str]:
        """Tokens before and after, of the replaced content where it was recorded, else of the window."""
        if self.scope == "window" and self.window_before is not None and self.window_after is not None:
            return self.window_before, self.window_after, self.scope
        return self.tokens_before, self.tokens_after, self.scope


@dataclass(frozen=True, slots=True)
class ReportedRewind:
    """One return of the conversation to an earlier point, with the branch that it abandoned."""

    turn: int
    turns: int
    """Model calls of the branch."""
    blocks: int
    tokens: int


@dataclass(frozen=True, slots=True)
class OtherRecord:
    """A record of the same session by another source, which does not count."""

    session_id: str
    source: str


@dataclass(frozen=True, slots=True)
class ReportedRegret:
    """Content that was fetched again after it was removed."""

    turn: int
    turn_left: int
    cause: str
    tokens: int
    what: str
    """The content by its file or command."""
    target: str | None = None
    """The file or command alone."""


@dataclass(frozen=True, slots=True)
class ReportedCacheBreak:
    """A call that sent more than half of a cached prefix as new input."""

    turn: int
    cause: str
    rewritten_tokens: int
    cached_tokens: int
    dollars: float | None
    block_id: str | None


@dataclass(frozen=True, slots=True)
class SessionReport:
    """The content of a report on one session; tokens, ratios 0 to 1, dollars."""

    session: SessionRow
    turns: Sequence[TurnRow]
    """The last one may not have ended (`open_turn`); no count of turns contains it."""
    zone_turns: dict[Zone, int]
    """Turns that ended in each zone; only zones that occurred."""
    composition: dict[Component, int]
    """Tokens by component at the last measured turn."""
    evictions: Sequence[ReportedEviction]
    compressions: Sequence[ReportedCompression]
    regrets: Sequence[ReportedRegret]
    alerts: Sequence[AlertRow]
    worst_turn: int | None
    """First turn in the session's worst zone."""
    forecast_record: ForecastRecord = NO_FORECASTS
    """Forecasts at the distance of the last one."""
    rewinds: Sequence[ReportedRewind] = ()
    notes: Sequence[Note] = ()
    """Notes and bookmarks of readers."""
    findings: tuple[Finding, ...] = ()
    """The most expensive first."""
    cost_causes: tuple[CostCause, ...] = ()
    """Parts that add up to the cost, the most expensive first."""
    cache_breaks: Sequence[ReportedCacheBreak] = ()
    uses: Sequence[ToolUse] = ()
    """Tools with their files and commands, those carried through most calls first."""
    by_name: Mapping[NameKind, Sequence[NamedCost]] = field(default_factory=dict)
    """MCP servers, tools, skills and memory files, the most expensive first."""
    rules: Sequence[ReportedRules] = ()
    """Standing instructions after each compaction."""
    zone_starts: Mapping[Zone, int] = field(default_factory=dict)
    """Tokens at which orange and yellow start at the last limit; empty while it is unknown."""
    damaged: Sequence[DamagedEvent] = ()
    """Stored events that cannot be read and are missing above."""
    missteps: SessionMissteps = NO_MISSTEPS
    live: bool = False
    """The session was live when the report was made: its unresolved alerts fire."""
    records: Sequence[OtherRecord] = ()
    """Sessions of the store that other sources recorded of the same session."""

    @property
    def headline(self) -> str:
        """The state of the window in one sentence."""
        phrases = session_phrases(
            self.session, worst_turn=self.worst_turn, open_turn=open_turn(self.turns), facts=self.facts,
            lost_rules=max((one.lost_count for one in self.rules), default=0), live=self.live,
            again=largest_again((one.target, one.tokens) for one in self.regrets),
        )  # fmt: skip
        return sentence(phrases)

    @property
    def missing_costs(self) -> tuple[str, ...]:
        """Calls without a price and turns without usage, which the cost does not contain; one sentence each."""
        ended = ended_turns(self.turns)
        unpriced = Counter(
            turn.model for turn in ended if turn.input_tokens is not None and turn.cost_dollars is None
        )
        uncounted = sum(turn.input_tokens is None for turn in ended)
        sentences = [
            f"{formats.count(calls, 'call')} of {model or 'an unnamed model'} not included: no price is known"
            for model, calls in unpriced.most_common()
        ]
        if uncounted and self.session.input_tokens:
            sentences.append(f"{formats.count(uncounted, 'turn')} not included: the usage was not recorded")
        return tuple(sentences)

    @property
    def stated_totals(self) -> str:
        """The totals that the recording states; empty without any."""
        session = self.session
        totals = session.stated_input_tokens, session.stated_output_tokens, session.stated_cost_dollars
        return formats.stated_totals(*totals) if any(totals) else ""

    @property
    def cost_notes(self) -> tuple[str, ...]:
        """The estimated part of the cost, and what it does not contain; one sentence each."""
        copied = formats.copied_calls(self.session.copied_turns)
        notes = [copied] if copied else []
        if self.stated_totals:
            notes.append(self.stated_totals)
        other = [turn for turn in self.turns if turn.list_cost_dollars is not None]
        if other:
            recorded_cost = formats.dollars(sum(turn.cost_dollars or 0.0 for turn in other))
            listed = formats.dollars(sum(turn.list_cost_dollars or 0.0 for turn in other))
            calls = formats.count(len(other), "call")
            notes.append(
                f"recorded cost of {calls} {recorded_cost}; {listed} for the recorded usage at published prices"
            )
        estimated = [turn for turn in self.turns if turn.recorded_output_tokens is not None]
        if not estimated:
            return (*notes, *self.missing_costs)
        output = formats.tokens(sum(turn.output_tokens or 0 for turn in estimated), estimated=True)
        recorded = formats.tokens(sum(turn.recorded_output_tokens or 0 for turn in estimated))
        calls = formats.count(len(estimated), "call")
        note = f"the output of {calls} is estimated: {output} tokens, of which {recorded} are recorded"
        return (*notes, note, *self.missing_costs)

    @property
    def facts(self) -> FactTotals | None:
        """Facts of all evaluated compressions; None if none was evaluated."""
        evaluated = [compression.facts for compression in self.compressions if compression.facts is not None]
        return FactTotals(*map(sum, zip(*map(astuple, evaluated), strict=True))) if evaluated else None


def gather(store: EventReader, session: SessionRow, *, now: float | None = None) -> SessionReport:
    """Read the content of a report on *session* as of *now*, bounded for sessions of any length.

    Without *now* the session counts as over, so that no alert fires.
    """
    turns = store.turns(session.session_id)
    zones = Counter(turn.zone for turn in ended_turns(turns) if turn.zone is not None)
    record = [one for types in _READ for one in _record(store, session, types)]
    events = intact_events(record)
    evidence = read_evidence(store, session, turns, now=now)
    listed = findings(evidence)
    content = store.composition(session.session_id).content
    return SessionReport(
        session=session,
        turns=turns,
        zone_turns={zone: zones[zone] for zone in ZONES if zones[zone]},
        composition=next((dict(turn.components) for turn in reversed(turns) if turn.components), {}),
        evictions=[
            _eviction(one, data)
            for one in events
            if isinstance(data := one.event.data, BlocksEvicted) and data.policy != REWOUND
        ],
        compressions=_with_regrowth(store, session, turns, _compressions(store, events)),
        regrets=[_regret(one, data) for one in events if isinstance(data := one.event.data, ContentRegretted)],
        alerts=store.alerts(AlertFilter(session_id=session.session_id)),
        worst_turn=worst_turn(store, turns, session),
        forecast_record=forecast_record(turns, compaction_turns(one.event for one in events)),
        rewinds=[
            ReportedRewind(one.event.context.turn, data.turns, data.blocks, data.tokens)
            for one in events
            if isinstance(data := one.event.data, HistoryRewound)
        ],
        notes=notes_of(events),
        findings=listed,
        cost_causes=cost_causes(
            evidence.counted_turns, evidence.breaks, total=session.cost_dollars, findings=listed
        ),
        cache_breaks=[
            ReportedCacheBreak(
                turn, data.cause, data.rewritten_tokens, data.cached_tokens, data.dollars, data.block_id
            )
            for turn, data in evidence.breaks
        ],
        uses=evidence.uses,
        by_name={kind: costs_by_name(content, kind) for kind in NAME_KINDS},
        rules=[
            reported_rules(data, one.event.context.turn, store.content)
            for one in events
            if isinstance(data := one.event.data, RulesFollowed)
        ],
        zone_starts=_zone_starts(events),
        missteps=missteps_of(read_session_health(store, session, turns)),
        damaged=sorted((one for one in record if isinstance(one, DamagedEvent)), key=attrgetter("seq")),
        live=now is not None and is_live(session, now),
        records=[
            OtherRecord(row.session_id, row.source)
            for row in store.sessions(SessionFilter(same_as=session.session_id, limit=MAXIMUM_RECORDS))
        ],
    )


_COMPRESSION_EVENTS: Final = ("content.compressed", "compaction.measured", "fidelity.evaluated")
_READ: Final = (
    ("blocks.evicted",),
    ("history.rewound",),
    _COMPRESSION_EVENTS,
    ("content.regretted",),
    ("rules.followed",),
    NOTE_EVENTS,
    ("session.started", "limit.changed"),
)
"""Event types of each bounded read."""


def _record(
    store: EventReader, session: SessionRow, types: tuple[str, ...]
) -> Sequence[StoredEvent | DamagedEvent]:
    return store.events_or_damage(EventFilter(session_id=session.session_id, types=types, limit=MAXIMUM_EVENTS))


def _zone_starts(events: Sequence[StoredEvent]) -> dict[Zone, int]:
    changes = [data for one in events if isinstance(data := one.event.data, SessionStarted | LimitChanged)]
    limits = limits_of(changes[-1]) if changes else None
    if limits is None:
        return {}
    return {"orange": limits.at(limits.thresholds.orange), "yellow": limits.at(limits.thresholds.yellow)}


def _eviction(stored: StoredEvent, data: BlocksEvicted) -> ReportedEviction:
    reasons = Counter(block.reason for block in data.blocks)
    reason = reasons.most_common(1)[0][0] if reasons else ""
    return ReportedEviction(
        turn=stored.event.context.turn,
        policy=data.policy,
        blocks=len(data.blocks),
        tokens_removed=data.tokens_removed,
        tokens_freed=data.tokens_freed,
        reason="cause unknown" if data.policy == UNKNOWN_CAUSE else reason,
    )


def latest_compressions(store: EventReader, session_id: str, *, limit: int) -> list[ReportedCompression]:
    """Return the latest compressions of a session in order, each with its evaluation."""
    events = _latest(store, session_id, _COMPRESSION_EVENTS, limit=limit * len(_COMPRESSION_EVENTS))
    return _compressions(store, events[::-1])[-limit:]


def last_lost_facts(store: EventReader, session_id: str) -> list[str]:
    """Return the facts that the last evaluated compression lost, decisions and open work before names.

    Only captured texts are known.
    """
    for stored in _latest(store, session_id, ("fidelity.evaluated",), limit=1):
        if isinstance(data := stored.event.data, FidelityEvaluated):
            lost = [fact for fact in data.facts if fact.outcome in ("lost", "contradicted")]
            lost.sort(key=lambda fact: severity(fact.kind, fact.outcome))
            texts = (store.content(fact.digest) for fact in lost)
            return list(islice((text for text in texts if text), MAXIMUM_FACTS))
    return []


def last_rule_fates(store: EventReader, session_id: str) -> dict[str, RuleFate]:
    """Return what became of the rules in the last compaction, by the digests of their wordings."""
    for stored in _latest(store, session_id, ("rules.followed",), limit=1):
        if isinstance(data := stored.event.data, RulesFollowed):
            return {outcome.digest: outcome.fate for outcome in data.outcomes}
    return {}


def _latest(store: EventReader, session_id: str, types: tuple[str, ...], *, limit: int) -> list[StoredEvent]:
    query = EventFilter(session_id=session_id, types=types, limit=limit, newest_first=True)
    return intact_events(store.events_or_damage(query))


def _compressions(store: EventReader, events: Sequence[StoredEvent]) -> list[ReportedCompression]:
    """Return the compressions in order, each with its evaluation."""
    fidelity: dict[str, FidelityEvaluated] = {}
    measured: dict[str, CompactionMeasured] = {}
    for stored in events:
        data = stored.event.data
        if isinstance(data, CompactionMeasured):
            measured[data.of] = data
        if isinstance(data, FidelityEvaluated) and data.of is not None:
            fidelity.setdefault(data.of, data)
    needed: dict[str, list[str]] = {}
    for stored in events:
        if isinstance(data := stored.event.data, ContentRegretted):
            needed.setdefault(data.cause_event_id, []).append(
                f"{regretted_name(data)} at turn {stored.event.context.turn}"
            )
    return [
        _compression(
            one,
            data,
            fidelity.get(one.event.event_id),
            measured.get(one.event.event_id),
            needed_again=tuple(needed.get(one.event.event_id, ())),
            content=store.content,
        )
        for one in events
        if isinstance(data := one.event.data, ContentCompressed)
    ]


def _with_regrowth(
    store: EventReader, session: SessionRow, turns: Sequence[TurnRow], made: Sequence[ReportedCompression]
) -> list[ReportedCompression]:
    compacted = [one.turn for one in made if one.is_compaction]
    following = dict(pairwise(compacted))
    return [
        replace(
            one,
            regrowth=read_regrowth(
                store, session.session_id, turns, compacted_turn=one.turn, next_turn=following.get(one.turn)
            ),
        )
        if one.is_compaction and number < MAXIMUM_REGROWN
        else one
        for number, one in enumerate(made)
    ]


def _compression(
    stored: StoredEvent,
    data: ContentCompressed,
    evaluated: FidelityEvaluated | None,
    measured: CompactionMeasured | None,
    *,
    needed_again: tuple[str, ...],
    content: Callable[[str], str | None],
) -> ReportedCompression:
    return ReportedCompression(
        turn=stored.event.context.turn,
        strategy=data.strategy,
        trigger=data.trigger,
        outcome=data.outcome,
        tokens_before=data.tokens_before,
        tokens_after=data.tokens_after,
        scope=data.scope,
        ratio=data.ratio,
        fidelity=evaluated.score if evaluated else None,
        facts=FactTotals.of([evaluated] if evaluated else []),
        note=data.reason or (evaluated.reason if evaluated else "not evaluated"),
        cost_dollars=data.cost_dollars,
        window_before=None if measured is None else measured.tokens_before,
        window_after=None if measured is None else measured.tokens_after,
        faults=tuple(faults_of(evaluated)) if evaluated else (),
        unmeasured=evaluated.unmeasured if evaluated else (),
        worst=tuple(worst_texts(evaluated, content)) if evaluated else (),
        needed_again=needed_again,
    )


def _regret(stored: StoredEvent, data: ContentRegretted) -> ReportedRegret:
    return ReportedRegret(
        stored.event.context.turn, data.turn_left, data.cause, data.tokens, regretted_name(data), data.target
    )
