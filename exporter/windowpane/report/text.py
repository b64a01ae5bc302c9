"""The report as text: 80 columns, readable without color and without Unicode."""

from __future__ import annotations

import math
from textwrap import wrap
from typing import TYPE_CHECKING, Final

from windowpane.core.characters import plain
from windowpane.core.vocabulary import COMPONENTS, RULE_SOURCES, ZONES
from windowpane.report.composition import NAME_KINDS
from windowpane.report.rule_survival import survival_curve
from windowpane.text import formats
from windowpane.text.forecasts import compaction_level_text, next_event
from windowpane.text.labels import COMPONENT_LABELS, LIMIT_SOURCE_LABELS, RULE_SOURCE_LABELS
from windowpane.text.zones import gauge, zone_mark

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windowpane.report.composition import NamedCost
    from windowpane.report.session_report import ReportedCompression, SessionReport
    from windowpane.store.records import SessionRow

WIDTH: Final = 80
ROWS: Final = 12
"""Rows of each table; further rows are counted."""
NOT_EVALUATED: Final = "not evaluated"
LOSSES: Final = 3
"""Losses of one compression that are listed."""
COMPACTIONS: Final = 4
"""Numbers of compactions by which the rules are counted."""
NAMES: Final = 4
"""MCP servers, tools, skills and memory files, of each."""
LOST_RULES: Final = 4
"""Rules listed for each compaction."""


def to_text(report: SessionReport, *, unicode: bool = True) -> str:
    """Return the whole report in lines of at most 80 columns."""
    sections = [
        _head(report, unicode=unicode),
        _findings(report),
        _composition(report),
        _by_name(report),
        _uses(report),
        _zones(report, unicode=unicode),
        _evictions(report),
        _rewinds(report),
        _compressions(report),
        _rules(report),
        _cache_breaks(report),
        _regrets(report),
        [f"Missteps   {report.missteps.text}"] if report.missteps.text else [],
        _alerts(report),
        _notes(report),
        _damaged(report),
        _cost(report),
    ]
    return text_page(sections, unicode=unicode)


def text_page(sections: Sequence[Sequence[str]], *, unicode: bool) -> str:
    """Return the lines of *sections* without control characters and at most 80 columns wide."""
    blocks = (
        "\n".join(part for line in section for part in _fitted(plain(line))) for section in sections if section
    )
    text = "\n\n".join(blocks) + "\n"
    return text if unicode else formats.in_ascii(text)


def _ahead(session: SessionRow, *, live: bool) -> str:
    """Return the forecast of a live session; a session that is over has none."""
    if not live:
        return ""
    event = next_event(session)
    if event.turns is not None and math.isinf(event.turns):
        return "  not growing"
    return f"  {event.text}" if event.text else ""


def _head(report: SessionReport, *, unicode: bool) -> list[str]:
    session = report.session
    used = formats.tokens_short(session.used_tokens, estimated=session.is_estimated)
    limit = formats.tokens_short(session.limit_tokens)
    identity = f"agent {session.agent}   model {session.model or formats.UNKNOWN}   source {session.source}"
    size = ", ".join(
        formats.count(number, noun)
        for number, noun in (
            (session.turns, "turn"),
            (session.exchanges, "exchange"),
            (session.windows, "window"),
        )
    )
    share = formats.percent(session.utilization, estimated=session.is_estimated)
    level = f"{gauge(session.utilization)} {share}"
    zone = zone_mark(session.zone, unicode=unicode)
    lines = [
        *([session.title] if session.title else []),
        session.session_id,
        *_location(session),
        *_records(report),
        identity + ("   incomplete" if session.incomplete else ""),
        f"{size}   {_times(session)}",
        "",
        report.headline,
        "",
        f"{level} {zone}  {used}/{limit}{_ahead(session, live=report.live)}",
    ]
    if session.limit_source is not None:
        lines.append(
            f"limit {formats.tokens(session.limit_tokens)} tokens ({LIMIT_SOURCE_LABELS[session.limit_source]})"
        )
    level = compaction_level_text(session.compaction_tokens, session.compaction_evidence)
    lines += [text for text in (level, report.forecast_record.text) if text]
    return lines


def _location(session: SessionRow) -> list[str]:
    """Return a line with where the session worked, as far as it is recorded."""
    names = (("folder", session.folder), ("repository", session.repository), ("branch", session.branch))
    others = (("label", session.label), ("project", session.project))
    recorded = [f"{name} {value}" for name, value in (*names, *others) if value]
    return ["   ".join(recorded)] if recorded else []


def _records(report: SessionReport) -> list[str]:
    """Return a line with the other records of the session."""
    if report.session.same_as:
        return [f"the same session as {report.session.same_as}, which counts for both"]
    others = [f"{record.source} ({record.session_id})" for record in report.records]
    return [f"also recorded by {', '.join(others)}"] if others else []


def _composition(report: SessionReport) -> list[str]:
    parts = report.composition
    total = sum(parts.values())
    if not total:
        return []
    lines = ["The window at the last turn"]
    for component in COMPONENTS:
        tokens = parts.get(component, 0)
        if tokens:
            label, share = COMPONENT_LABELS[component], tokens / total
            lines.append(f"  {label:<20} {tokens:>10,}  {share:>4.0%}  {'#' * round(share * 40)}")
    return lines


def _findings(report: SessionReport) -> list[str]:
    if not report.findings:
        return []
    lines = ["Findings"]
    for finding in report.findings:
        money = "" if finding.dollars is None else f"{formats.dollars(finding.dollars)}  "
        evidence = "; ".join(f"turn {one.turn}: {one.text}" for one in finding.evidence)
        lines += [f"  {money}{finding.text}. {finding.advice}", f"    {evidence}"]
    return lines


def _by_name(report: SessionReport) -> list[str]:
    rows = [
        f"  {formats.dollars(cost.dollars):>8}  {label} {cost.name}: {name_details(cost)}"
        for kind, label in NAME_KINDS.items()
        for cost in report.by_name[kind][:NAMES]
    ]
    return ["Costs by name", *rows] if rows else []


def name_details(cost: NamedCost) -> str:
    """Return the tokens and calls of a name: `3 calls, $0.04 each; 12.3k tokens in all calls; …`."""
    calls = "never called" if cost.definition_tokens is not None else ""
    if cost.calls:
        each = "" if cost.dollars_per_call is None else f", {formats.dollars(cost.dollars_per_call)} each"
        calls = f"{formats.count(cost.calls, 'call')}{each}"
    parts = [calls, f"{formats.tokens_short(cost.carried_tokens)} tokens in all calls"]
    if cost.definition_tokens is not None:
        parts.append(f"definitions of {formats.tokens(cost.definition_tokens)} tokens in each")
    if cost.offered > 1:
        parts.append(f"{cost.unused} of {cost.offered} tools never called")
    return "; ".join(filter(None, parts))


def _uses(report: SessionReport) -> list[str]:
    if not report.uses:
        return []
    rows = [
        f"  {formats.tokens_short(use.carried_tokens):>6} in all calls  {formats.dollars(use.dollars):>8}  "
        f"{formats.tokens_short(use.tokens):>6} entered  {f'{use.tool} {use.target}'.strip()}"
        for use in report.uses
    ]
    return ["Tools, files and commands by what all calls sent of them", *_bounded(rows)]


def _cache_breaks(report: SessionReport) -> list[str]:
    if not report.cache_breaks:
        return []
    session = report.session
    title = (
        f"Cache breaks   {session.cache_breaks}, {formats.tokens_short(session.cache_break_tokens)} tokens "
        f"again, {formats.dollars(session.cache_break_dollars)} more than reading them"
    )
    rows = [
        f"  turn {one.turn:>4}  {formats.tokens_short(one.rewritten_tokens):>6} of "
        f"{formats.tokens_short(one.cached_tokens)} cached  {formats.dollars(one.dollars)}  {one.cause}"
        + (f" {one.block_id}" if one.block_id else "")
        for one in report.cache_breaks
    ]
    return [title, *_bounded(rows)]


def _times(session: SessionRow) -> str:
    if session.started_at is None and session.last_at is None:
        return "no times recorded"
    return f"{formats.local(session.started_at)} to {formats.local(session.last_at)}"


def _zones(report: SessionReport, *, unicode: bool) -> list[str]:
    turns = report.zone_turns
    if not turns:
        return []
    counts = [f"{zone_mark(zone, unicode=unicode)} {turns[zone]}" for zone in ZONES if zone in turns]
    worst = report.session.worst_zone
    if worst is not None and worst not in turns:
        counts.append(f"{zone_mark(worst, unicode=unicode)} before the first recorded call")
    return ["Turns by zone   " + "   ".join(counts)]


def _evictions(report: SessionReport) -> list[str]:
    session = report.session
    if not report.evictions:
        return []
    blocks = formats.count(session.evicted_blocks, "item")
    title = f"Removals   {blocks}, {formats.tokens(session.evicted_tokens)} tokens"
    rows = [
        f"  turn {eviction.turn:>4}  {eviction.policy:<12} {eviction.counted:>11}  "
        f"{formats.tokens_short(eviction.tokens_freed):>6} freed  {eviction.reason}"
        for eviction in report.evictions
    ]
    return [title, *_bounded(rows)]


def _rewinds(report: SessionReport) -> list[str]:
    if not report.rewinds:
        return []
    total = sum(rewind.tokens for rewind in report.rewinds)
    branches = formats.count(len(report.rewinds), "branch", "branches")
    title = f"Went back   {branches} abandoned, {formats.tokens(total)} tokens"
    rows = [
        f"  turn {rewind.turn:>4}  {formats.count(rewind.turns, 'turn'):>9}  "
        f"{formats.tokens_short(rewind.tokens):>6} in {formats.count(rewind.blocks, 'item')}"
        for rewind in report.rewinds
    ]
    return [title, *_bounded(rows)]


def _compressions(report: SessionReport) -> list[str]:
    if not report.compressions:
        return []
    rows = []
    for item in report.compressions:
        before, after, subject = item.sizes
        sizes = f"{subject} {formats.tokens_short(before)} to {formats.tokens_short(after)}"
        measured = f"ratio {formats.ratio(item.ratio)}"
        if subject == "content" and item.window_before is not None and item.window_after is not None:
            window = (formats.tokens_short(size) for size in (item.window_before, item.window_after))
            measured += f"  window {' to '.join(window)}"
        lost = _unknown_loss(item) if item.facts is None else item.facts.text
        what = item.strategy if item.outcome == "accepted" else f"{item.strategy} {item.outcome}"
        rows.append(f"  turn {item.turn:>4}  {what}  {sizes}  {measured}  {lost}")
        rows += _losses(item)
    made = f"{report.session.compressions} accepted of {len(report.compressions)}"
    return [f"Compactions   {made}", *_bounded(rows)]


def _unknown_loss(item: ReportedCompression) -> str:
    """Return why no facts of a compression were looked up."""
    if item.outcome != "accepted":
        return item.note
    return "facts not evaluated" if item.note == NOT_EVALUATED else f"facts unknown: {item.note}"


def _losses(item: ReportedCompression) -> list[str]:
    """Return what the probe found, the worst first."""
    again = ", ".join(item.needed_again[:LOSSES])
    return [
        *(f"    {loss}" for loss in item.worst[:LOSSES]),
        *(["    faults: " + "; ".join(item.faults[:LOSSES])] if item.faults else []),
        *([f"    needed again: {again}"] if again else []),
        *([f"    {item.regrowth.text}"] if item.regrowth is not None else []),
        *(f"    not measured: {what}" for what in item.unmeasured),
    ]


def _rules(report: SessionReport) -> list[str]:
    if not report.rules:
        return []
    rows = []
    for item in report.rules:
        if item.survival is None and not item.is_unknown:
            continue
        rows.append(f"  turn {item.turn:>4}  compaction {item.compaction}: {item.summary}")
        rows += [f"    {rule.label}" for rule in item.lost[:LOST_RULES] if rule.text]
    unrecorded = {source for item in report.rules for source in item.unrecorded}
    notes = [
        f"  the recording has no text of the {RULE_SOURCE_LABELS[source]}: its rules are unknown"
        for source in RULE_SOURCES
        if source in unrecorded
    ]
    title = ", ".join(
        f"{seen} of {total} visible after {formats.count(number, 'compaction')}"
        for number, total, seen in survival_curve(report.rules)[:COMPACTIONS]
    )
    return [f"Rules   {title or 'none found'}", *_bounded(rows), *notes]


def _regrets(report: SessionReport) -> list[str]:
    if not report.regrets:
        return []
    rows = [
        f"  turn {regret.turn:>4}  removed at turn {regret.turn_left}, "
        f"{formats.tokens(regret.tokens)} tokens needed again: {regret.what}"
        for regret in report.regrets
    ]
    return [f"Needed again   {report.session.regrets}", *_bounded(rows)]


def _alerts(report: SessionReport) -> list[str]:
    if not report.alerts:
        return ["Alerts   none fired"]
    rows = []
    for alert in report.alerts:
        until = f"resolved at turn {alert.resolved_turn}"
        if alert.resolved_turn is None:
            until = "firing" if report.live else "never resolved"
        rows.append(f"  {alert.severity:<8} {alert.alert:<22} turn {alert.fired_turn:>4}, {until}")
    return [f"Alerts   {len(report.alerts)}", *_bounded(rows)]


def _notes(report: SessionReport) -> list[str]:
    if not report.notes:
        return []
    rows = [f"  turn {note.turn}  {' '.join(note.text.split()) or note.kind}" for note in report.notes]
    return [f"Notes   {formats.count(len(report.notes), 'note')} of readers", *_bounded(rows)]


def _damaged(report: SessionReport) -> list[str]:
    if not report.damaged:
        return []
    title = f"Unreadable   {formats.count(len(report.damaged), 'event')}, missing above"
    rows = [f"  turn {one.turn}, seq {one.seq}, {one.type}: {one.problem}" for one in report.damaged]
    return [title, *_bounded(rows)]


def _cost(report: SessionReport) -> list[str]:
    session = report.session
    if not session.input_tokens:
        copied = formats.copied_calls(session.copied_turns)
        note = report.stated_totals or copied or "the recording has no usage of single calls"
        return [f"Cost   {formats.dollars(session.shown_cost_dollars, stated=session.is_cost_stated)}   {note}"]
    cached = formats.percent(session.cache_ratio)
    sent = f"sent {formats.tokens(session.input_tokens)} tokens, {cached} from cache"
    estimated = session.is_cost_estimated
    written = f"written {formats.tokens(session.output_tokens, estimated=estimated)}"
    lines = [f"Cost   {formats.dollars(session.cost_dollars, estimated=estimated)}   {sent}; {written}"]
    for cause in report.cost_causes:
        at = f"   turns {', '.join(map(str, cause.turns))}" if cause.turns else ""
        share = formats.percent(cause.share)
        lines.append(f"  {formats.dollars(cause.dollars):>8} {share:>4}  {cause.name}{at}")
    compressing = [item.cost_dollars for item in report.compressions if item.cost_dollars is not None]
    if compressing:
        lines.append(f"  {formats.dollars(sum(compressing))} of it for compactions")
    if session.subagent_cost_dollars is not None:
        total = formats.dollars(session.total_cost_dollars, estimated=estimated)
        below = formats.dollars(session.subagent_cost_dollars)
        lines.append(f"  {total} with its sub-agents, which cost {below}")
    return [*lines, *(f"  {note}" for note in report.cost_notes)]


def _bounded(rows: Sequence[str]) -> list[str]:
    if len(rows) <= ROWS:
        return list(rows)
    return [*rows[:ROWS], f"  and {len(rows) - ROWS} more"]


def _fitted(line: str) -> list[str]:
    """Wrap a line; no number is cut."""
    return wrap(
        line, WIDTH, subsequent_indent="      " if line.startswith(" ") else "", break_on_hyphens=False
    ) or [""]
