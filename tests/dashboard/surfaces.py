"""The values of one session on every surface that shows it, by one name each.

A label is a number where the surface has one, else its text. `disagreements` compares what has the same name.
"""

from __future__ import annotations

import html
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rich.table import Table

from windowpane.cli.report import session_document, turn_document
from windowpane.cli.sessions import session_table
from windowpane.cli.top import top_table
from windowpane.core.codec import decode
from windowpane.core.events import (
    AlertFired,
    BlockAdded,
    BlocksEvicted,
    CacheBroken,
    CallsCopied,
    CompactionMeasured,
    ContentCompressed,
    ContentRegretted,
    Event,
    FidelityEvaluated,
    LimitChanged,
    OverflowDetected,
    PressureMeasured,
    SessionEnded,
    TurnEnded,
)
from windowpane.core.vocabulary import COMPONENT_OF, COMPONENTS, REWOUND, SEVERITIES, ZONES, Component
from windowpane.metrics import catalog
from windowpane.metrics.catalog import Metric
from windowpane.metrics.fold import MetricState
from windowpane.report import gather, gather_turn, to_html, to_text
from windowpane.report.findings import findings, read_evidence
from windowpane.report.headline import FactTotals, sentence
from windowpane.report.session_report import SessionReport
from windowpane.report.turn_report import TurnReport
from windowpane.sources.hooks.status import session_line
from windowpane.store.embedded import SqliteStore
from windowpane.store.filters import AlertFilter, EventFilter, SessionFilter
from windowpane.store.records import AlertRow, SessionRow
from windowpane.text import formats
from windowpane.text.forecasts import next_event
from windowpane.text.labels import COMPONENT_LABELS
from windowpane.text.zones import zone_label
from windowpane_dashboard.queries.alerts import read_firings
from windowpane_dashboard.queries.comparison import ComparedSession, differences
from windowpane_dashboard.queries.compressions import read_compressions
from windowpane_dashboard.queries.filters import AlertFilters, TrendAddress
from windowpane_dashboard.queries.fleet import Fleet, fleet_frame
from windowpane_dashboard.queries.team import read_team, team_cost
from windowpane_dashboard.queries.timeline import Timeline, read_timeline
from windowpane_dashboard.queries.trends import OTHERS, line_of, period_of, trends
from windowpane_dashboard.queries.window import read_turn_window
from windowpane_dashboard.sections.turn_table import turn_table
from windowpane_dashboard.sections.window import heading_text

Values = Mapping[str, object]

EVERYTHING = 1_000_000
GUESSED = ("assumed", "catalogue", "observed_floor", "observed_compaction")
"""Sources of a limit that a larger total refutes."""


@dataclass(frozen=True)
class StoredSession:
    """A session of a store, each read made once."""

    store: SqliteStore
    row: SessionRow

    @cached_property
    def events(self) -> list[Event]:
        """Its events as the store returns them."""
        query = EventFilter(session_id=self.row.session_id, limit=EVERYTHING)
        return [stored.event for stored in self.store.events(query)]

    @cached_property
    def report(self) -> SessionReport:
        """Its report."""
        return gather(self.store, self.row)

    @cached_property
    def timeline(self) -> Timeline:
        """The timeline of its page."""
        return read_timeline(self.store, self.row.session_id)

    @cached_property
    def alerts(self) -> Sequence[AlertRow]:
        """Its alerts."""
        return self.store.alerts(AlertFilter(session_id=self.row.session_id, limit=1_000))

    @cached_property
    def copied_turns(self) -> frozenset[int]:
        """Its turns whose calls another session counts: it shows them, and no sum has them."""
        marks = _payloads(self, CallsCopied)
        return frozenset(turn for mark in marks for turn in range(mark.first_turn, mark.last_turn + 1))


# -- the events, counted here -----------------------------------------------------------------------


def of_events(session: StoredSession) -> Values:
    """Return the values by adding up the events, independently of every fold."""
    turns, compressions = _payloads(session, TurnEnded), _payloads(session, ContentCompressed)
    evictions = [data for data in _payloads(session, BlocksEvicted) if data.policy != REWOUND]
    breaks = _payloads(session, CacheBroken)
    own = [
        event.data
        for event in session.events
        if isinstance(event.data, TurnEnded) and event.context.turn not in session.copied_turns
    ]
    usages = [turn.usage for turn in own if turn.usage]
    costs = [one.cost_dollars for one in (*own, *compressions) if one.cost_dollars is not None]
    measured = _payloads(session, PressureMeasured)
    facts = FactTotals.of(_payloads(session, FidelityEvaluated))
    fired = Counter(data.severity for data in _payloads(session, AlertFired))
    sent = sum(usage.input_total for usage in usages)
    values: dict[str, object] = {
        "turns": len(turns),
        "tokens sent": sent or None,
        "output tokens": sum(usage.output_tokens for usage in usages),
        "cached tokens": sum(usage.cache_read_tokens for usage in usages),
        "cached share": sum(usage.cache_read_tokens for usage in usages) / sent if sent else None,
        "cost": math.fsum(costs) if costs else None,
        "blocks evicted": sum(len(data.blocks) for data in evictions),
        "tokens evicted": sum(data.tokens_removed for data in evictions),
        "tool tokens": sum(
            data.block.tokens
            for data in _payloads(session, BlockAdded)
            if data.block.content_type in ("tool_call", "tool_result")
            and data.block.tool_name
            and data.block.replaces is None
        ),
        "compressions": sum(data.outcome == "accepted" for data in compressions),
        "attempted compressions": len(compressions),
        "regrets": len(_payloads(session, ContentRegretted)),
        "overflows": len(_payloads(session, OverflowDetected)),
        "cache breaks": len(breaks),
        "cache break tokens": sum(data.rewritten_tokens for data in breaks),
        "alerts": sum(fired.values()),
        "critical alerts": fired["critical"],
        "warnings": fired["warning"],
        "worst severity": max(fired, key=SEVERITIES.index) if fired else None,
        "facts": facts.total if facts else None,
        "facts lost": facts.damaged if facts else None,
    }
    if measured:
        last = measured[-1]
        values |= {
            "used tokens": last.used_tokens,
            "utilization": last.utilization,
            "limit": last.limit_tokens,
            "zone": last.zone,
            "velocity": last.velocity,
            "turns ahead": next_event(last).turns,
            "burn rate": last.burn_rate,
            "compaction level": last.compaction_tokens,
        }
    totals = [turn.usage.input_total for turn in turns if turn.usage and turn.count_source == "usage"]
    if totals and measured:
        stated = [
            data.tokens_before
            for data in _payloads(session, CompactionMeasured)
            if data.source_before == "reported"
        ]
        peak = max((*totals, *stated, measured[-1].used_tokens))
        if len({data.limit_tokens for data in measured}) == 1:
            values["peak tokens"] = peak
            values["peak utilization"] = peak / last.limit_tokens if last.limit_tokens else None
    return values


def _payloads(session: StoredSession, kind: type[Any]) -> list[Any]:
    return [event.data for event in session.events if isinstance(event.data, kind)]


# -- the command line ----------------------------------------------------------------------------------------


def of_row(session: StoredSession) -> Values:
    """`windowpane sessions --json`, which the pages and the status line read too."""
    row = session.row
    return {
        "turns": row.turns, "tokens sent": row.input_tokens or None, "output tokens": row.output_tokens,
        "cached tokens": row.cache_read_tokens, "cost": row.cost_dollars, "total cost": row.total_cost_dollars,
        "blocks evicted": row.evicted_blocks, "tokens evicted": row.evicted_tokens,
        "compressions": row.compressions, "regrets": row.regrets, "overflows": row.overflows,
        "cache breaks": row.cache_breaks, "cache break tokens": row.cache_break_tokens,
        "cache break cost": row.cache_break_dollars, "worst severity": row.worst_severity,
        "used tokens": row.used_tokens, "utilization": row.utilization, "limit": row.limit_tokens,
        "zone": row.zone, "worst zone": row.worst_zone, "velocity": row.velocity,
        "turns ahead": next_event(row).turns, "compaction level": row.compaction_tokens,
        "peak tokens": row.peak_used_tokens, "peak utilization": row.peak_utilization, "fidelity": row.fidelity,
        "exchanges": row.exchanges, "windows": row.windows, "unresolved alerts": row.firing,
    }  # fmt: skip


def of_sessions_table(session: StoredSession) -> Values:
    """`windowpane sessions`."""
    cells = _cells(session_table([session.row]))
    return {
        "zone": cells["zone"], "turns": cells["turns"], "utilization": cells["now"],
        "peak utilization": cells["peak"], "blocks evicted": cells["rem"], "compressions": cells["cmp"],
        "regrets": cells["again"], "total cost": cells["cost"],
    }  # fmt: skip


def of_top(session: StoredSession) -> Values:
    """`windowpane top`."""
    _, table = top_table([session.row], now=session.row.last_at or 0.0).renderables
    assert isinstance(table, Table)
    cells = _cells(table)
    _, share, _ = cells["window"].split(maxsplit=2)
    return {
        "utilization": share,
        "velocity": cells["Δ/turn"],
        "total cost": cells["cost"],
        "ahead": cells["next"],
    }


def _cells(table: Table) -> dict[str, str]:
    """Return the only row of a table by its headings."""
    return {str(column.header): str(next(iter(column.cells))) for column in table.columns}


def of_status_line(session: StoredSession) -> Values:
    """The status line of Claude Code before its first call, whose values are those of the store."""
    line = session_line({"session_id": session.row.session_id}, str(session.store.path))
    return _matches(
        line, r"(?P<utilization>\S+%) ", r"(?P<used_tokens>[\d.kM]+)(?:/(?P<limit>[\d.kM]+))?(?: |$)",
        r" (?P<velocity>\S+)/turn",
    )  # fmt: skip


def of_report(session: StoredSession) -> Values:
    """`windowpane report --json`."""
    document = session_document(session.report).model_dump(mode="json")
    turns, compressions = document["turns"], document["compressions"]
    own = [turn for turn in turns if turn["turn"] not in session.copied_turns]
    costs = [turn["cost_dollars"] for turn in own if turn["cost_dollars"] is not None]
    facts = [one["facts"] for one in compressions if one["facts"]]
    return {
        "headline": document["answer"],
        "turns": len(turns) - (document["open_turn"] is not None),
        "open turn": document["open_turn"],
        "tokens sent": sum(turn["input_tokens"] or 0 for turn in own) or None,
        "output tokens": sum(turn["output_tokens"] or 0 for turn in own),
        "cached tokens": sum(turn["cache_read_tokens"] or 0 for turn in own),
        "cost of turns": math.fsum(costs) if costs else None,
        "tokens evicted": sum(one["tokens_removed"] for one in document["evictions"]),
        "blocks evicted": sum(one["blocks"] for one in document["evictions"]),
        "compressions": sum(one["outcome"] == "accepted" for one in compressions),
        "attempted compressions": len(compressions),
        "compression sizes": [one.sizes[:2] for one in session.report.compressions],
        "compression ratios": [one.ratio for one in session.report.compressions],
        "regrets": len(document["regrets"]),
        "cache breaks": len(document["cache_breaks"]),
        "cache break tokens": sum(one["rewritten_tokens"] for one in document["cache_breaks"]),
        "alerts": len(document["alerts"]),
        "facts": sum(one["total"] for one in facts) if facts else None,
        "facts lost": sum(one["lost"] + one["contradicted"] for one in facts) if facts else None,
        "worst turn": document["worst_turn"],
        "forecast record": session.report.forecast_record.text,
        "findings": [finding.text for finding in session.report.findings],
    }


def of_text_report(session: StoredSession) -> Values:
    """`windowpane report`."""
    text = " ".join(to_text(session.report).split())
    return _matches(
        text,
        r"   ?(?P<turns>[\d,]+) turns?, (?P<exchanges>[\d,]+) exchanges?, (?P<windows>[\d,]+) windows?",
        r"\] (?P<utilization>\S+) (?P<zone>\S+ \w+) (?P<used_tokens>≈?[\d.kM]+)/",
        r"limit (?P<limit>[\d,]+) tokens",
        r"compact(?:s|ed) at (?P<compaction_level>[\d.kM]+)",
        r"Removals (?P<blocks_evicted>[\d,]+) blocks?, (?P<tokens_evicted>[\d,]+) tokens",
        r"Compactions (?P<compressions>[\d,]+) accepted of (?P<attempted_compressions>[\d,]+)",
        r"Cache breaks (?P<cache_breaks>[\d,]+), (?P<cache_break_tokens>[\d.kM]+) tokens again",
        r"Needed again (?P<regrets>\d+) ",
        r"Alerts (?P<alerts>\d+) ",
        r"Cost (?P<cost>\S+) sent (?P<tokens_sent>[\d,]+) tokens, (?P<cached_share>\S+) from cache; "
        r"written (?P<output_tokens>[\d,]+)",
    )


def of_html_report(session: StoredSession) -> Values:
    """`windowpane report --html`."""
    page = to_html(session.report)
    tiles = {
        html.unescape(name): (html.unescape(value), html.unescape(unit))
        for name, value, unit in re.findall(r"<div><span>(.*?)</span><b>(.*?)</b><span>(.*?)</span></div>", page)
    }
    heading = re.search(r"<p class=lead>(.*?)</p>", page)
    lost = tiles["lost"][0].split(" of ")
    window = next(tile for name, tile in tiles.items() if name.startswith("window "))
    return {
        "headline": html.unescape(heading[1]) if heading else "",
        "utilization": window[0],
        "zone": window[1],
        "peak utilization": tiles["peak"][0],
        "peak tokens": tiles["peak"][1].removesuffix(" tokens"),
        "tokens evicted": tiles.get("removed", ["0"])[0],
        **(dict(zip(("facts lost", "facts"), lost, strict=True)) if len(lost) == 2 else {}),
        "regrets": tiles["needed again"][0],
        "cost": tiles["cost"][0],
        "cached share": tiles["cost"][1].removesuffix(" of input cached"),
    } | _matches(page, r"<span>turns <b>(?P<turns>[\d,]+)<")


def _matches(text: str, *patterns: str) -> dict[str, object]:
    found = [match.groupdict() for pattern in patterns if (match := re.search(pattern, text))]
    return {name.replace("_", " "): value for groups in found for name, value in groups.items()}


# -- metrics and exports -------------------------------------------------------------------------------------


def of_metrics(session: StoredSession) -> Values:
    """`/metrics` of a process that had only this session, or replays it from the store."""
    state = MetricState()
    state.write([event for event in session.events if not isinstance(event.data, SessionEnded)])
    families = {family.metric: family for family in state.collect(now=0.0, as_of="last")}

    def total(metric: Metric, **labels: str) -> float:
        names = metric.labels
        points = families[metric].points if metric in families else []
        return math.fsum(
            point.value
            for point in points
            if all(dict(zip(names, point.labels, strict=True))[name] == value for name, value in labels.items())
        )

    def gauge(metric: Metric, **labels: str) -> float | None:
        return total(metric, **labels) if metric in families and families[metric].points else None

    sent = sum(total(catalog.MODEL_TOKENS, type=kind) for kind in ("input", "cache_read", "cache_write"))
    evicted_again = total(catalog.EVICTED_BLOCKS, policy=REWOUND), total(catalog.EVICTED_TOKENS, policy=REWOUND)
    compacts = gauge(catalog.TURNS_UNTIL_COMPACTION, bound="p50") is not None
    ahead = catalog.TURNS_UNTIL_COMPACTION if compacts else catalog.TURNS_UNTIL_RED
    values = {
        "turns": total(catalog.TURNS) + len(session.copied_turns),
        "tokens sent": sent or None,
        "output tokens": total(catalog.MODEL_TOKENS, type="output"),
        "cached tokens": total(catalog.MODEL_TOKENS, type="cache_read"),
        "cost": total(catalog.COST) or None,
        "blocks evicted": total(catalog.EVICTED_BLOCKS) - evicted_again[0],
        "tokens evicted": total(catalog.EVICTED_TOKENS) - evicted_again[1],
        "tool tokens": total(catalog.TOOL_TOKENS)
        - total(catalog.TOOL_TOKENS, component=COMPONENT_OF["tool_definition"]),
        "compressions": total(catalog.COMPRESSIONS, outcome="accepted"),
        "attempted compressions": total(catalog.COMPRESSIONS),
        "regrets": total(catalog.REGRETS),
        "overflows": total(catalog.OVERFLOWS),
        "cache breaks": total(catalog.CACHE_BREAKS),
        "cache break tokens": total(catalog.CACHE_REWRITTEN),
        "alerts": total(catalog.ALERT_TRANSITIONS, state="firing"),
        "critical alerts": total(catalog.ALERT_TRANSITIONS, state="firing", severity="critical"),
        "warnings": total(catalog.ALERT_TRANSITIONS, state="firing", severity="warning"),
        "used tokens": total(catalog.USED_TOKENS),
        "utilization": gauge(catalog.UTILIZATION),
        "limit": gauge(catalog.LIMIT_TOKENS),
        "velocity": gauge(catalog.VELOCITY),
        "burn rate": gauge(catalog.BURN_RATE),
        "compaction level": gauge(catalog.COMPACTION_TOKENS),
        "turns ahead": gauge(ahead, bound="p50"),
        "turns ahead, early": gauge(ahead, bound="p10"),
        "turns ahead, late": gauge(ahead, bound="p90"),
    }
    if not session.copied_turns:
        return values
    shown = {
        "blocks evicted", "tokens evicted", "tool tokens", "compressions", "attempted compressions", "regrets",
        "overflows", "alerts", "critical alerts", "warnings",
    }  # fmt: skip
    return {label: value for label, value in values.items() if label not in shown}


def of_export(session: StoredSession) -> Values:
    """`windowpane audit export` and the downloads, decoded."""
    query = EventFilter(session_id=session.row.session_id, limit=EVERYTHING)
    types = Counter(decode(row.body).type for batch in session.store.export_batches(query) for row in batch)
    return {
        "turns": types["turn.ended"],
        "attempted compressions": types["content.compressed"],
        "regrets": types["content.regretted"],
        "overflows": types["overflow.detected"],
        "cache breaks": types["cache.broken"],
        "alerts": types["alert.fired"],
    }


# -- the pages -----------------------------------------------------------------------------------------------


def of_fleet_page(session: StoredSession) -> Values:
    """The row of the fleet's table."""
    row = session.row
    fleet = Fleet((row,), session.store.fleet_totals(SessionFilter(), live_since=0.0), {})
    cells = fleet_frame(fleet, row.last_at or 0.0).iloc[0]
    return {
        "turns": int(cells["turns"]), "utilization": cells["window"], "zone": cells["zone"],
        "total cost": None if row.is_cost_stated else cells["cost"],
    }  # fmt: skip


def of_session_page(session: StoredSession) -> Values:
    """The headline, the chart's frame, the compressions and the findings of the session page."""
    row, timeline = session.row, session.timeline
    turns, compressions = timeline.turns, read_compressions(session.store, row.session_id)
    sizes = [
        one.data if one.window is None or one.data.scope == "content" else one.window for one in compressions
    ]
    own = turns[~turns["turn"].isin(session.copied_turns)]
    costs = own["cost_dollars"].dropna()
    read = findings(read_evidence(session.store, row, session.store.turns(row.session_id)))
    values: dict[str, object] = {
        "turns": timeline.ended_turns,
        "open turn": timeline.open_turn,
        "headline": sentence(timeline.headline(row, live=False)),
        "tokens sent": own["input_tokens"].sum() or None,
        "output tokens": own["output_tokens"].sum(),
        "cached tokens": own["cache_read_tokens"].sum(),
        "cost of turns": costs.sum() if len(costs) else None,
        "attempted compressions": len(compressions),
        "compressions": sum(one.data.outcome == "accepted" for one in compressions),
        "compression sizes": [(one.tokens_before, one.tokens_after) for one in sizes],
        "compression ratios": [one.data.ratio for one in compressions],
        "facts": timeline.facts.total if timeline.facts else None,
        "facts lost": timeline.facts.damaged if timeline.facts else None,
        "regrets": len(timeline.regrets),
        "tool tokens": sum(use.tokens for use in session.store.tool_use(row.session_id, limit=EVERYTHING)),
        **_latest(timeline),
        "worst turn": timeline.worst_turn,
        "forecast record": timeline.forecasts.text,
        "findings": [finding.text for finding in read],
        "alerts": len(session.alerts),
        "total cost": team_cost(read_team(session.store, row)),
    }
    return values


def _latest(timeline: Timeline) -> dict[str, object]:
    """Return what the metrics at the top of the page add to the session's row."""
    latest = timeline.latest
    if latest is None:
        return {}
    early, late = next_event(latest).band(latest)
    return {
        "turns ahead": next_event(latest).turns, "turns ahead, early": early, "turns ahead, late": late,
        "burn rate": latest.burn_rate,
    }  # fmt: skip


def of_alerts_page(session: StoredSession) -> Values:
    """The alerts page, of one session."""
    listed = read_firings(session.store, AlertFilters(session=session.row.session_id), math.inf)
    severities = Counter(row.severity for row in listed.rows)
    return {
        "alerts": len(listed.rows),
        "critical alerts": severities["critical"],
        "warnings": severities["warning"],
        "unresolved alerts": sum(row.resolved_turn is None for row in listed.rows),
    }


def of_compare_page(session: StoredSession) -> Values:
    """The table of differences, with the session on both sides."""
    side = ComparedSession(session.row, session.timeline, tuple(session.alerts))
    cells = differences(side, side).set_index("measure")["A"]
    names = {
        "window, tokens": "limit", "turns": "turns", "window at its fullest": "peak utilization",
        "overflows": "overflows", "tokens sent": "tokens sent", "cost": "cost",
        "input from the cache": "cached share", "compactions": "compressions",
        "facts lost": "facts lost", "needed again": "regrets",
    }  # fmt: skip
    return {label: cells[name] for name, label in names.items()}


# -- one turn ------------------------------------------------------------------------------------------------


def turn_of_events(session: StoredSession, turn: int) -> Values:
    """Return the values of a turn from its events."""
    events = [event.data for event in session.events if event.context.turn == turn]
    values: dict[str, object] = {
        "alerts": sum(isinstance(data, AlertFired) for data in events),
    }
    for data in events:
        if isinstance(data, PressureMeasured) and data.phase != "next":
            values |= {
                "used tokens": data.used_tokens, "limit": data.limit_tokens, "utilization": data.utilization,
                "zone": data.zone, "velocity": data.velocity, "composition": _nonzero(data.used_by_component),
                "stale tokens": data.stale_tokens, "duplicate tokens": data.duplicate_tokens,
                "tokens added": data.added_tokens,
            }  # fmt: skip
        elif isinstance(data, TurnEnded):
            values["cost"] = data.cost_dollars
            if data.usage is not None:
                values |= {
                    "input tokens": data.usage.input_total, "output tokens": data.usage.output_tokens,
                    "cached tokens": data.usage.cache_read_tokens,
                }  # fmt: skip
    refuted = {
        data.previous_tokens
        for data in _payloads(session, LimitChanged)
        if data.limit_source in ("observed_floor", "observed_compaction")
    }
    if values.get("limit") in refuted:  # measured against a limit that never was
        return {label: value for label, value in values.items() if label not in ("limit", "utilization", "zone")}
    return values


def turn_of_report(session: StoredSession, turn: int) -> Values:
    """`windowpane report --turn --json`."""
    report = gather_turn(session.store, session.row, turn)
    assert report is not None
    document = turn_document(report).model_dump(mode="json")
    row = document["turn"]
    return {
        **_values_of_turn(row),
        "composition": _nonzero(row["components"]),
        "used tokens": report.turn.used_tokens,
        "alerts": len(document["alerts"]),
        "headline": document["answer"],
        "change": document["change_tokens"],
        "composition by blocks": _by_component(report),
    }


def turn_of_page(session: StoredSession, turn: int) -> Values:
    """The window of the turn on the session page, and its line in the table of turns."""
    window = read_turn_window(session.store, session.row.session_id, session.timeline, turn)
    values = window.values
    assert values is not None
    line = turn_table(session.timeline.turns).set_index("turn").loc[turn]
    return {
        **_values_of_turn(values),
        "used tokens": values["used"],
        "composition": _nonzero({component: values[component] for component in COMPONENTS}),
        "headline": heading_text(values, turn),
        "composition by blocks": _nonzero(
            window.blocks[window.blocks["block"] != ""].groupby("component")["tokens"].sum().to_dict()
        ),
        "composition by name": {
            COMPONENT_LABELS[component]: float(values[component]) for component in COMPONENTS if values[component]
        },
        "alerts": sum(alert.fired_turn == turn for alert in session.alerts),
        **({} if _without_nan(line["change"]) is None else {"change": line["change"]}),
    }  # fmt: skip


def _by_component(report: TurnReport) -> dict[str, float]:
    sums: Counter[Component] = Counter()
    for one in report.blocks:
        sums[COMPONENT_OF[one.block.content_type]] += one.tokens
    return _nonzero(sums)


def _values_of_turn(values: Any) -> dict[str, object]:
    names = {
        "limit_tokens": "limit", "utilization": "utilization", "zone": "zone", "velocity": "velocity",
        "stale_tokens": "stale tokens", "duplicate_tokens": "duplicate tokens", "added_tokens": "tokens added",
        "cost_dollars": "cost", "input_tokens": "input tokens", "output_tokens": "output tokens",
        "cache_read_tokens": "cached tokens",
    }  # fmt: skip
    return {label: values[name] for name, label in names.items()}


def _nonzero(composition: Mapping[Any, float]) -> dict[str, float]:
    return {str(component): float(tokens) for component, tokens in composition.items() if tokens}


def _without_nan(value: Any) -> Any:
    """Return a label of a surface; None for the unknown numbers of data frames."""
    return None if isinstance(value, float) and math.isnan(value) else value


TURN_SURFACES: Mapping[str, Callable[[StoredSession, int], Values]] = {
    "events": turn_of_events,
    "report --turn": turn_of_report,
    "session page": turn_of_page,
}


# -- the comparison ------------------------------------------------------------------------------------------


SURFACES: Mapping[str, Callable[[StoredSession], Values]] = {
    "events": of_events,
    "sessions --json": of_row,
    "sessions": of_sessions_table,
    "top": of_top,
    "status line": of_status_line,
    "report --json": of_report,
    "report": of_text_report,
    "report --html": of_html_report,
    "metrics": of_metrics,
    "export": of_export,
    "fleet page": of_fleet_page,
    "session page": of_session_page,
    "alerts page": of_alerts_page,
    "compare page": of_compare_page,
}

TEXTS: Mapping[str, Sequence[Callable[[Any], str]]] = {
    **dict.fromkeys(
        ("utilization", "peak utilization", "cached share", "stale share", "duplicate share"), (formats.percent,)
    ),
    **dict.fromkeys(("cost", "total cost"), (formats.dollars,)),
    **dict.fromkeys(("zone", "worst zone"), (zone_label,)),
    **dict.fromkeys(
        ("velocity", "burn rate"),
        (formats.tokens_short, lambda value: formats.tokens_short(value, signed=True)),
    ),
    "fidelity": (formats.ratio,),
}
"""The texts of a label other than numbers of tokens or things."""
COUNTED = (formats.tokens, formats.tokens_short)
DATED_COST_TOLERANCE = 1e-5
"""Trends round the cost of each call to a millionth of a dollar."""


def disagreements(session: StoredSession) -> list[str]:
    """Return a line for each label of the session and some of its turns that two surfaces state differently."""
    name = session.row.session_id
    lines = compared(name, {surface: read(session) for surface, read in SURFACES.items()})
    for turn in _sampled(session):
        read = {surface: read(session, turn) for surface, read in TURN_SURFACES.items()}
        lines += compared(f"{name} turn {turn}", read)
    return lines + [f"{name}: {line}" for line in _impossible(session)]


def _impossible(session: StoredSession) -> Iterator[str]:
    """Yield statements about the session that exclude each other."""
    row, report = session.row, session.report
    worst = max((ZONES.index(zone) for zone in report.zone_turns), default=0)
    if report.headline.startswith("Stayed green") and worst:
        yield f"stayed green, and has turns in {ZONES[worst]}"
    if sum(report.zone_turns.values()) > row.turns:
        yield f"{sum(report.zone_turns.values())} turns by zone of {row.turns}"
    sizes = [one.window_before for one in report.compressions if one.window_before is not None]
    if sizes and max(sizes) > row.peak_used_tokens:
        yield f"a compaction from {max(sizes)} tokens above the peak of {row.peak_used_tokens}"
    if row.utilization is not None and row.utilization > (row.peak_utilization or 0.0):
        yield f"a window that is {row.utilization:.3f} full above its peak of {row.peak_utilization}"
    if row.zone is not None and ZONES.index(row.zone) > ZONES.index(row.worst_zone or "green"):
        yield f"a window that is {row.zone} now and was {row.worst_zone} at worst"
    ended = [data.report for data in _payloads(session, SessionEnded) if data.report is not None]
    stated = (ended[-1].peak_used_tokens, ended[-1].peak_utilization) if ended else None
    if stated and not row.incomplete and stated != (row.peak_used_tokens, row.peak_utilization):
        yield f"a peak of {(row.peak_used_tokens, row.peak_utilization)}, and {stated} when it ended"
    if row.limit_tokens is not None and row.limit_source in GUESSED and row.peak_used_tokens > row.limit_tokens:
        yield f"a peak of {row.peak_used_tokens} in a window that is assumed to have {row.limit_tokens}"


def _sampled(session: StoredSession) -> list[int]:
    """Return the first, a middle and the last measured turn, and the worst one."""
    turns = session.timeline.turns["turn"].tolist()
    chosen = {turns[at] for at in (0, len(turns) // 2, -1) if turns}
    return sorted(chosen | {session.timeline.worst_turn} - {None})


def compared(name: str, surfaces: Mapping[str, Values]) -> list[str]:
    """Return a line for each label that differs from that of the first surface with it."""
    first: dict[str, tuple[str, object]] = {}
    lines = []
    for surface, values in surfaces.items():
        for label, value in values.items():
            origin, expected = first.setdefault(label, (surface, value))
            if not _same(label, expected, value):
                lines.append(f"{name}: {label} is {expected!r} ({origin}) and {value!r} ({surface})")
    return lines


def _same(label: str, expected: object, value: object) -> bool:
    expected, value = _without_nan(expected), _without_nan(value)
    if expected is None and isinstance(value, str) and value.endswith(formats.STATED):
        return True  # a total that the recording states, marked as such
    if isinstance(value, str) and not isinstance(expected, str):
        return value.removeprefix(formats.ESTIMATED) in {text(expected) for text in TEXTS.get(label, COUNTED)}
    if label in ("zone", "worst zone"):
        return value in (expected, zone_label(expected))  # type: ignore[arg-type]  # of the events
    if isinstance(value, float | int) and isinstance(expected, float | int):
        tolerance = DATED_COST_TOLERANCE if label == "dated cost" else 1e-9
        return math.isclose(value, expected, rel_tol=tolerance, abs_tol=1e-9)
    return value == expected


def sums_disagreeing(store: SqliteStore, sessions: Sequence[StoredSession]) -> list[str]:
    """Return a line for each sum over all sessions that differs from theirs: the fleet's, and the trends'."""
    counted = [session.row for session in sessions if not session.row.same_as]
    costs = [row.cost_dollars for row in counted if row.cost_dollars is not None]
    totals = store.fleet_totals(SessionFilter(), live_since=math.inf)
    surfaces: dict[str, Values] = {
        "sessions": {
            "sessions": len(counted),
            "tokens sent": sum(row.input_tokens for row in counted),
            "cached tokens": sum(row.cache_read_tokens for row in counted),
            "cost": math.fsum(costs) if costs else None,
        },
        "fleet page": {
            "sessions": totals.sessions, "tokens sent": totals.input_tokens,
            "cached tokens": totals.cache_read_tokens, "cost": totals.cost_dollars,
        },
    }  # fmt: skip
    dated = [row for row in counted if row.last_at is not None]
    days = store.trends(days=36_500)
    surfaces["dated sessions"] = {
        "dated turns": sum(row.turns - row.copied_turns for row in dated),
        "dated input": sum(row.input_tokens for row in dated),
        "dated regrets": sum(row.regrets for row in dated),
        "dated cache breaks": sum(row.cache_breaks for row in dated),
        "dated cost": math.fsum(row.cost_dollars or 0.0 for row in dated),
    }
    surfaces["trends page"] = {
        "dated turns": sum(day.calls for day in days),
        "dated input": sum(day.input_tokens for day in days),
        "dated regrets": sum(day.regrets for day in days),
        "dated cache breaks": sum(day.cache_breaks for day in days),
        "dated cost": math.fsum(day.cost_dollars for day in days),
    }
    return compared("all sessions", surfaces) + _trends_disagreeing(store, counted)


def _trends_disagreeing(store: SqliteStore, counted: Sequence[SessionRow]) -> list[str]:
    """Return a line for each period and line of the trends that does not count its sessions once."""
    rows = store.trends(days=36_500)
    until = max((row.day for row in rows), default=0)
    repeated = store.repeated_days(days=36_500, until=until)
    days = {row.session_id: store.session_days(row.session_id) for row in counted}
    lines = []
    for by, days_drawn in (("agent", "90"), ("model", "90"), ("release", "7")):
        position = TrendAddress(by=by, days=days_drawn)
        drawn = trends(rows, position, repeated).frame
        frame = drawn[drawn["line"] != OTHERS]
        expected: dict[tuple[object, str], set[str]] = {}
        for session_id, recorded in days.items():
            for row in recorded:
                expected.setdefault((period_of(row, position), line_of(row, by)), set()).add(session_id)
        for key, sessions in zip(
            zip(frame["period"], frame["line"], strict=True), frame["sessions"], strict=True
        ):
            if sessions != len(expected.get(key, ())):
                lines.append(f"trends by {by}: {sessions} sessions of {key}, which has {len(expected[key])}")
    return lines
