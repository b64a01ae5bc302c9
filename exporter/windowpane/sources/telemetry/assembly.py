"""Calls assembled from spans and events that come in any order, some of them several times.

One call may be reported by the span of a framework, that of an instrumentation inside it, that of the provider's
client inside that, and by events. Reports are held for a while; then those of one call are merged:

1. an event belongs to the span that it names;
2. of nested spans the innermost is the call; an outer one that holds exactly one adds what that does not state;
3. reports of two instrumentations that are not nested are one call when they share the trace, the response or the
   conversation, one took place within the other, and neither usage nor text contradicts it.

Calls are released in the order in which they started. A report that comes later than that is dropped if its call
was released, and released as a separate call otherwise. Pure: the caller passes the time.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from windowpane.sources.telemetry import coding_agents, gen_ai
from windowpane.sources.telemetry.raw_bodies import RawBodies, ReadFile
from windowpane.sources.telemetry.records import LogRecord, Span
from windowpane.sources.telemetry.reported_call import (
    Assembled,
    AssembledCall,
    AssembledCompaction,
    Position,
    ReportedCall,
)
from windowpane.sources.telemetry.spans import agent_of, conversation_of, facts_of, service_of

WAIT_SECONDS: Final = 10.0
"""Time that reports of a call are awaited: twice the interval at which exporters send."""
TRACE_SECONDS: Final = 900.0
"""Time after its last span for which a trace is remembered."""
MAXIMUM_TRACES: Final = 20_000
MAXIMUM_SPANS: Final = 400_000
"""Spans remembered over all traces; beyond it the trace idle for longest is forgotten."""
MAXIMUM_KEYS: Final = 50_000
"""Traces, conversations and responses whose latest calls are remembered."""
MAXIMUM_EVENTS: Final = 2_000
"""Events held for one span."""
MAXIMUM_ANCESTORS: Final = 64
MAXIMUM_COMPARED: Final = 32
"""Reports that start during a report and are compared with it."""
TOLERANCE_SECONDS: Final = 0.05
"""Clocks and roundings by which one report may seem to start before another that surrounds it."""


@dataclass(slots=True, eq=False)
class _Report:
    """A report of a call, held until its time has come."""

    call: ReportedCall
    scope: str
    service: str
    trace_id: str
    span_id: str
    started_at: float
    ended_at: float
    arrived_at: float
    absorbed: bool = False
    """It is part of another report."""
    released: bool = False
    """Its call was released; only the fields that identify it remain."""
    positions: list[Position] = field(default_factory=list)
    """The items that it was read from, those of the reports it has absorbed included."""

    @property
    def reporter(self) -> tuple[str, str]:
        return self.scope, self.call.convention


@dataclass(slots=True)
class _Node:
    """The remembered part of a span."""

    parent_id: str
    conversation: str
    agent: str


@dataclass(slots=True)
class _Trace:
    nodes: dict[str, _Node] = field(default_factory=dict)
    reports: list[_Report] = field(default_factory=list)
    """Those held."""
    around_released: set[str] = field(default_factory=set)
    """Spans around calls that were released: what they report of a call was counted."""
    events: dict[str, list[LogRecord]] = field(default_factory=dict)
    """Events by the span that they belong to, until its call is released."""
    touched_at: float = 0.0


class CallAssembly:
    """The reports that are held, and what is remembered of their traces. Not thread-safe."""

    def __init__(self, *, wait_seconds: float = WAIT_SECONDS, read_file: ReadFile = lambda _path: None) -> None:
        """*read_file* reads the files of bodies that events name."""
        self._wait = wait_seconds
        self._bodies = RawBodies(read_file)
        self._traces: OrderedDict[str, _Trace] = OrderedDict()
        """The one idle for longest first."""
        self._spans = 0
        self._held: list[_Report] = []
        self._compactions: list[tuple[float, AssembledCompaction]] = []
        self._released: OrderedDict[str, deque[_Report]] = OrderedDict()
        """The latest reports released in a trace, conversation or response, without content."""
        self._threads: OrderedDict[str, coding_agents.Thread] = OrderedDict()
        """Statements of Codex about its conversations, by their id."""
        self._adding: list[Position] = []
        """The position of the item that is being added, where it has one."""
        self._void: list[Position] = []

    def __len__(self) -> int:
        return len(self._held) + len(self._compactions)

    def add(self, item: Span | LogRecord, now: float, position: Position | None = None) -> None:
        """Add a span or log record that has come."""
        self._adding = [] if position is None else [position]
        if isinstance(item, Span):
            self._add_span(item, now)
        else:
            self._add_log(item, now)
        self._forget(now)

    def due(self, now: float, *, everything: bool = False) -> list[Assembled]:
        """Return the calls whose time has come, in the order in which they started."""
        last = now if everything else now - self._wait
        due = [report for report in self._held if report.arrived_at <= last]
        compactions = [one for at, one in self._compactions if at <= last]
        if not due and not compactions:
            return []
        due = self._with_earlier(due)
        self._merge(due)
        calls = [self._release(report) for report in due if not report.absorbed]
        released = set(due)
        for trace in {report.trace_id: self._traces.get(report.trace_id) for report in due}.values():
            if trace is not None:
                trace.reports = [one for one in trace.reports if not one.absorbed and not one.released]
        self._held = [report for report in self._held if report not in released and not report.absorbed]
        self._compactions = [(at, one) for at, one in self._compactions if at > last]
        return sorted([*calls, *compactions], key=lambda one: one.started_at)

    def take_void(self) -> list[Position]:
        """Remove and return the positions of reports that belong to no call, or to one released before them."""
        void, self._void = self._void, []
        return void

    # -- adding -----------------------------------------------------------------------------------------------

    def _add_span(self, span: Span, now: float) -> None:
        trace = self._trace(span.trace_id, now)
        facts = facts_of(span)
        if span.span_id in trace.nodes:  # sent again after a lost response
            self._void += self._adding
            return
        trace.nodes[span.span_id] = _Node(span.parent_id, facts.conversation, facts.agent)
        self._spans += 1
        if span.span_id in trace.around_released:
            trace.around_released.update(_ancestors(trace, span.span_id))
            self._void += self._adding
            return
        if facts.call is None:
            return
        call = facts.call
        call.conversation = call.conversation or facts.conversation or conversation_of(span.resource)
        call.agent = call.agent or facts.agent
        service = service_of(span.resource)
        self._hold(
            _Report(call, span.scope, service, span.trace_id, span.span_id, span.started_at, span.ended_at, now),
            trace,
        )

    def _add_log(self, record: LogRecord, now: float) -> None:
        event = coding_agents.agent_event(record)
        if event is not None:
            self._add_agent_event(event, now)
            return
        if not record.name.startswith("gen_ai."):
            return
        if record.trace_id and record.span_id:
            trace = self._trace(record.trace_id, now)
            events = trace.events.setdefault(record.span_id, [])
            if len(events) < MAXIMUM_EVENTS:
                events.append(record)
                self._spans += 1
        elif record.name == gen_ai.DETAILS and gen_ai.is_call(record.attributes):
            call = gen_ai.read_call(record.attributes)
            call.conversation = conversation_of(record.attributes) or conversation_of(record.resource)
            call.agent = agent_of(record.attributes)
            self._hold(
                _Report(call, record.scope, service_of(record.resource), "", "", record.at, record.at, now)
            )

    def _add_agent_event(self, event: coding_agents.AgentEvent, now: float) -> None:
        if self._bodies.add(event):
            return
        record = event.record
        compaction = coding_agents.read_compaction(event)
        if compaction is not None:
            agent = coding_agents.AGENTS[event.program]
            session = coding_agents.session_of(event)
            assembled = AssembledCompaction(compaction, session, agent, record.at, self._adding)
            self._compactions.append((now, assembled))
            return
        thread = coding_agents.read_thread(event)
        if thread is not None:
            self._add_thread(thread)
            return
        call = coding_agents.read_call(event)
        if call is not None:
            started_at = record.at - (coding_agents.latency_seconds(event) or 0.0)
            self._hold(_Report(call, record.scope, "", record.trace_id, "", started_at, record.at, now))

    def _add_thread(self, thread: coding_agents.Thread) -> None:
        """Remember what is stated of a conversation, by whatever event."""
        earlier = self._threads.pop(thread.conversation, thread)
        self._threads[thread.conversation] = thread._replace(
            parent=thread.parent or earlier.parent,
            compaction_tokens=thread.compaction_tokens or earlier.compaction_tokens,
        )

    def _hold(self, report: _Report, trace: _Trace | None = None) -> None:
        report.positions = self._adding
        self._held.append(report)
        if trace is not None:
            trace.reports.append(report)

    def _trace(self, trace_id: str, now: float) -> _Trace:
        trace = self._traces.get(trace_id)
        if trace is None:
            trace = self._traces[trace_id] = _Trace()
        trace.touched_at = now
        self._traces.move_to_end(trace_id)
        return trace

    def _forget(self, now: float) -> None:
        """Forget traces that are idle or beyond the maximum; reports that are held stay."""
        while self._traces:
            trace_id, trace = next(iter(self._traces.items()))
            full = len(self._traces) > MAXIMUM_TRACES or self._spans > MAXIMUM_SPANS
            if not full and now - trace.touched_at < TRACE_SECONDS:
                break
            del self._traces[trace_id]
            self._spans -= len(trace.nodes) + sum(map(len, trace.events.values()))
        for remembered in (self._released, self._threads):
            while len(remembered) > MAXIMUM_KEYS:
                remembered.popitem(last=False)

    # -- releasing --------------------------------------------------------------------------------------------

    def _with_earlier(self, due: list[_Report]) -> list[_Report]:
        """Return the due reports with those of the same trace or conversation that started earlier."""
        latest: dict[str, float] = {}
        for report in due:
            for key in _common_keys(report):
                latest[key] = max(latest.get(key, report.started_at), report.started_at)
        chosen = set(due)
        earlier = [
            report
            for report in self._held
            if report not in chosen
            and any(key in latest and report.started_at <= latest[key] for key in _common_keys(report))
        ]
        return sorted([*due, *earlier], key=lambda report: report.started_at)

    def _merge(self, due: list[_Report]) -> None:
        """Merge the reports of one call; each absorbed one is marked."""
        for report in due:
            self._add_events(report)
        for trace_id in {report.trace_id for report in due if report.trace_id in self._traces}:
            self._merge_nested(self._traces[trace_id])
        groups: dict[str, list[_Report]] = {
            key: list(self._released.get(key, ())) for report in due for key in _common_keys(report)
        }
        for report in self._held:
            if not report.absorbed:
                for key in _common_keys(report):
                    if key in groups:
                        groups[key].append(report)
        for reports in groups.values():
            if len(reports) > 1:
                self._merge_beside(reports)

    def _add_events(self, report: _Report) -> None:
        self._bodies.complete(report.call)
        trace = self._traces.get(report.trace_id)
        events = None if trace is None else trace.events.pop(report.span_id, None)
        if events:
            self._spans -= len(events)
            events.sort(key=lambda event: event.at)
            gen_ai.complete_from_events(
                report.call, ((event.name, event.attributes, event.body) for event in events)
            )
            for event in events:
                report.call.conversation = report.call.conversation or conversation_of(event.attributes)

    def _merge_nested(self, trace: _Trace) -> None:
        """Absorb every report that has others inside it."""
        by_span = {report.span_id: report for report in trace.reports}
        inner: dict[str, list[_Report]] = defaultdict(list)
        for report in trace.reports:
            for span_id in _ancestors(trace, report.span_id):
                if span_id in by_span:
                    inner[span_id].append(report)
        for span_id, reports in inner.items():
            outer = by_span[span_id]
            self._add_events(outer)
            outer.absorbed = True
            innermost = [report for report in reports if report.span_id not in inner]
            if len(innermost) == 1:
                innermost[0].call.complete(outer.call)
                innermost[0].positions += outer.positions
            else:
                self._void += outer.positions

    def _merge_beside(self, reports: list[_Report]) -> None:
        """Absorb the reports of other instrumentations that took place within one."""
        reports.sort(key=lambda report: (report.started_at, -report.ended_at))
        for index, outer in enumerate(reports):
            for inner in reports[index + 1 : index + 1 + MAXIMUM_COMPARED]:
                if inner.started_at > outer.ended_at + TOLERANCE_SECONDS:
                    break
                if outer.absorbed or inner.absorbed or not _same_call(outer, inner):
                    continue
                if outer.released and inner.released:
                    continue
                retained, other = (outer, inner) if outer.released else (inner, outer)
                self._add_events(other)
                other.absorbed = True
                if retained.released:
                    self._void += other.positions
                else:
                    retained.call.complete(other.call)
                    retained.positions += other.positions

    def _release(self, report: _Report) -> AssembledCall:
        """Return the call of *report* with the statements of the spans around it."""
        call = report.call
        thread = self._threads.get(call.conversation)
        if thread is not None:
            call.parent, call.compaction_tokens = call.parent or thread.parent, thread.compaction_tokens
        assembled = AssembledCall(
            call, report.trace_id, report.span_id, report.started_at, report.ended_at, report.service,
            positions=report.positions,
        )  # fmt: skip
        trace = self._traces.get(report.trace_id)
        if trace is not None:
            _read_surroundings(trace, assembled)
        self._remember(report, trace)
        return assembled

    def _remember(self, report: _Report, trace: _Trace | None) -> None:
        """Remember what identifies a call that is released, for reports of it that come later."""
        call, report.released = report.call, True
        report.call = ReportedCall(
            call.convention, usage=call.usage, response_id=call.response_id, conversation=call.conversation
        )
        if trace is not None:
            trace.around_released.update(_ancestors(trace, report.span_id))
        for key in _common_keys(report):
            self._released.setdefault(key, deque(maxlen=MAXIMUM_COMPARED)).append(report)
            self._released.move_to_end(key)


def _read_surroundings(trace: _Trace, assembled: AssembledCall) -> None:
    """Add the conversation and the agents that the spans around a call name."""
    call = assembled.call
    for span_id in _ancestors(trace, assembled.span_id):
        node = trace.nodes.get(span_id)
        if node is None:
            return
        call.conversation = call.conversation or node.conversation
        if node.agent and not assembled.enclosing_agent:
            assembled.enclosing_agent, assembled.enclosing_name = span_id, node.agent
        elif node.agent and node.agent != assembled.enclosing_name and not assembled.outer_agent:
            assembled.outer_agent = span_id


def _ancestors(trace: _Trace, span_id: str) -> Iterable[str]:
    """Return the ids of the spans around a span, the nearest first; the last may not have come."""
    node = trace.nodes.get(span_id)
    around: list[str] = []
    while node is not None and node.parent_id and len(around) < MAXIMUM_ANCESTORS:
        around.append(node.parent_id)
        node = trace.nodes.get(node.parent_id)
    return around


def _common_keys(report: _Report) -> list[str]:
    """Return the keys of what reports of one call have in common."""
    call = report.call
    pairs = (("trace", report.trace_id), ("response", call.response_id), ("conversation", call.conversation))
    return [f"{kind} {key}" for kind, key in pairs if key]


def _same_call(one: _Report, other: _Report) -> bool:
    """Return whether two reports that overlap are of one call."""
    if one.reporter == other.reporter or not (_within(one, other) or _within(other, one)):
        return False
    usage, other_usage = one.call.usage, other.call.usage
    if usage is not None and other_usage is not None:
        return usage.input_total == other_usage.input_total and usage.output_tokens == other_usage.output_tokens
    texts, other_texts = _texts(one.call), _texts(other.call)
    return not texts or not other_texts or texts == other_texts


def _within(inner: _Report, outer: _Report) -> bool:
    return (
        outer.started_at - TOLERANCE_SECONDS <= inner.started_at
        and inner.ended_at <= outer.ended_at + TOLERANCE_SECONDS
    )


def _texts(call: ReportedCall) -> list[Any]:
    return [part.text for part in call.reply or () if part.kind != "thinking"]
