"""The report on a session as one self-contained HTML file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from windowpane.alerts.rules import alert_title
from windowpane.core.vocabulary import ZONES
from windowpane.report.composition import NAME_KINDS
from windowpane.report.html_page import escape, html_page, identity, legend, table, tiles
from windowpane.report.rule_survival import survival_curve
from windowpane.report.svg import window_svg
from windowpane.report.text import name_details
from windowpane.text import formats
from windowpane.text.forecasts import compaction_level_text, next_event
from windowpane.text.labels import LIMIT_SOURCE_LABELS
from windowpane.text.palette import STACKING
from windowpane.text.zones import zone_label

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windowpane.report.session_report import SessionReport
    from windowpane.store.records import AlertRow

LOSSES: Final = 6
"""Rules and facts that are visible, so that the report is one printed page."""
TWO_VIEWS: Final = (
    "Causes and names are two views of the same cost, and add up differently: a name has its share, by tokens, "
    "of every call that sent its definitions, calls or results, whatever the cause. A server contains its tools."
)


def to_html(report: SessionReport) -> str:
    """Return the whole page."""
    session = report.session
    name = session.title or f"{session.agent}, {formats.local(session.started_at)}"
    if name.endswith("…"):
        name = f"{name.rpartition(' ')[0]} …"
    return html_page(
        f"{name}: context window",
        f"<h1>{escape(name)}</h1><p class=lead>{escape(report.headline)}</p>",
        _identity(report),
        _tiles(report),
        f"<div class=wide>{window_svg(report) or '<p>No turn was measured.</p>'}</div>",
        _legend(report),
        _losses(report),
        _cost(report),
        "<details class=appendix><summary>All tables</summary>",
        *(part(report) for part in _TABLES),
        "</details>",
    )


def _identity(report: SessionReport) -> str:
    session = report.session
    limit = f"{formats.tokens(session.limit_tokens)} tokens" if session.limit_tokens else "unknown"
    origin = f" ({LIMIT_SOURCE_LABELS[session.limit_source]})" if session.limit_source else ""
    facts = [
        ("agent", session.agent),
        ("model", session.model or formats.UNKNOWN),
        *([] if session.source.replace("_", "-") in session.agent else [("source", session.source)]),
        ("turns", f"{session.turns:,}"),
        ("limit", limit + origin),
        ("from", f"{formats.utc(session.started_at)} to {formats.utc(session.last_at)}"),
    ]
    level = compaction_level_text(session.compaction_tokens, session.compaction_evidence)
    if level:
        facts.append(("agent", level))
    if session.incomplete:
        facts.append(("recording", "incomplete"))
    return identity(facts)


def _tiles(report: SessionReport) -> str:
    session = report.session
    share = formats.percent(session.utilization, estimated=session.is_estimated)
    ahead, facts = next_event(session), report.facts
    lost_rules = max((one.lost_count for one in report.rules), default=0)
    rules = f", and {formats.count(lost_rules, 'rule')}" if lost_rules else ""
    besides = " apart from compactions" if session.compressions else ""
    removed = session.evicted_tokens
    values = [
        ("window now" if report.live else "window at the end", share, zone_label(session.zone)),
        ("peak", formats.percent(session.peak_utilization), f"{formats.tokens(session.peak_used_tokens)} tokens"),
        *([(f"{ahead.name} in", formats.turns_until(ahead.turns), "turns")] if report.live else []),
        *([("removed", formats.tokens_short(session.evicted_tokens), f"tokens{besides}")] if removed else []),
        ("lost", f"{facts.damaged:,} of {facts.total:,}" if facts else formats.UNKNOWN, f"facts{rules}"),
        ("needed again", f"{session.regrets:,}", "removed items"),
        (
            "cost",
            formats.dollars(session.stated_cost_dollars, stated=True)
            if session.is_cost_stated
            else formats.dollars(session.cost_dollars, estimated=session.is_cost_estimated),
            "" if session.cache_ratio is None else f"{formats.percent(session.cache_ratio)} of input cached",
        ),
    ]
    notes = "".join(f"<p class=quiet>Cost: {escape(sentence)}</p>" for sentence in report.cost_notes)
    return tiles(values) + notes


def _cost(report: SessionReport) -> str:
    """Return the causes, which add up to the cost, each with what was found about it; then the other findings."""
    causes = [
        [
            formats.dollars(cause.dollars), formats.percent(cause.share),
            ": ".join(filter(None, (cause.name, cause.advice))),
            _turns([one.turn for one in cause.finding.evidence] if cause.finding else cause.turns),
        ]
        for cause in report.cost_causes
    ]  # fmt: skip
    explained = [cause.finding for cause in report.cost_causes]
    others = [
        [
            "" if finding.dollars is None else f"{formats.dollars(finding.dollars)} of these", "",
            f"{finding.text}. {finding.advice}", _turns([one.turn for one in finding.evidence]),
        ]
        for finding in report.findings
        if finding not in explained
    ]  # fmt: skip
    if not causes:
        return table("What to do", ("what", "turns"), [row[2:] for row in others])
    return table("Cost", ("cost", "share", "cause, and what to do", "turns"), [*causes, *others])


def _turns(turns: Iterable[int]) -> str:
    return ", ".join(map(str, dict.fromkeys(turns)))


def _losses(report: SessionReport) -> str:
    """Return the facts that were contradicted, with both sides, then the rules and facts that were lost."""
    rules = [[str(item.turn), f"rule {rule.label}"] for item in report.rules for rule in item.lost]
    facts = [[str(item.turn), text] for item in report.compressions for text in item.worst]
    rows = sorted([*rules, *facts], key=lambda row: row[1].startswith(("rule ", "lost ")))
    more = f"<p class=quiet>and {len(rows) - LOSSES:,} more</p>" if len(rows) > LOSSES else ""
    return table("Lost or contradicted by compactions", ("turn", "what"), rows[:LOSSES]) + more


def _legend(report: SessionReport) -> str:
    visible = {component for turn in report.turns for component in turn.components if turn.components[component]}
    items = legend(component for component in STACKING if component in visible)
    return f"<p class=legend>{items}</p>"


def _zones(report: SessionReport) -> str:
    rows = [[zone_label(zone), str(report.zone_turns[zone])] for zone in ZONES if zone in report.zone_turns]
    return table("Turns by zone", ("zone", "turns"), rows)


def _alerts(report: SessionReport) -> str:
    rows = [
        [
            one.severity, alert_title(one.alert), str(one.fired_turn), _resolved(one, live=report.live),
            one.summary,
        ]
        for one in report.alerts
    ]  # fmt: skip
    return table("Alerts", ("severity", "alert", "fired at turn", "resolved at turn", "what"), rows)


def _evictions(report: SessionReport) -> str:
    rows = [
        [
            str(item.turn), item.policy.replace("_", " "), formats.tokens(item.blocks or None),
            formats.tokens(item.tokens_freed), item.reason,
        ]
        for item in report.evictions
    ]  # fmt: skip
    return table("Removals", ("turn", "policy", "items", "tokens freed", "main reason"), rows)


def _compressions(report: SessionReport) -> str:
    heads = (
        "turn", "outcome", "window before", "window after", "facts lost", "faults found", "needed again", "note"
    )  # fmt: skip
    rows = [
        [
            str(item.turn), item.outcome, formats.tokens(item.window_before), formats.tokens(item.window_after),
            f"{item.facts.damaged} of {item.facts.total}" if item.facts else formats.UNKNOWN,
            "; ".join(item.faults), ", ".join(item.needed_again), item.note,
        ]
        for item in report.compressions
    ]  # fmt: skip
    return table("Compactions", heads, rows)


def _rules(report: SessionReport) -> str:
    rows = [
        [str(item.turn), str(item.compaction), item.summary, "; ".join(rule.label for rule in item.lost)]
        for item in report.rules
    ]
    curve = [[str(number), str(total), str(seen)] for number, total, seen in survival_curve(report.rules)]
    return table("Rules after compactions", ("turn", "compaction", "rules", "lost or changed"), rows) + table(
        "Rules by number of compactions", ("compactions", "rules", "still visible"), curve
    )


def _cache_breaks(report: SessionReport) -> str:
    heads = ("turn", "cause", "tokens sent again", "cached", "cost")
    rows = [
        [
            str(item.turn), item.cause, formats.tokens(item.rewritten_tokens), formats.tokens(item.cached_tokens),
            formats.dollars(item.dollars),
        ]
        for item in report.cache_breaks
    ]  # fmt: skip
    return table("Cache breaks", heads, rows)


def _costs_by_name(report: SessionReport) -> str:
    rows = [
        [label, cost.name, formats.dollars(cost.dollars), name_details(cost)]
        for kind, label in NAME_KINDS.items()
        for cost in report.by_name[kind]
    ]
    listed = table("Costs by name", ("kind", "name", "cost", "calls and tokens"), rows)
    return f"{listed}<p class=quiet>{TWO_VIEWS}</p>" if listed else ""


def _uses(report: SessionReport) -> str:
    heads = ("tool", "file or command", "items", "tokens", "tokens in all calls", "share of the cost")
    rows = [
        [
            use.tool, use.target, str(use.blocks), formats.tokens(use.tokens), formats.tokens(use.carried_tokens),
            formats.dollars(use.dollars),
        ]
        for use in report.uses
    ]  # fmt: skip
    return table("Tools, files and commands", heads, rows)


def _regrets(report: SessionReport) -> str:
    rows = [
        [str(item.turn), item.what, str(item.turn_left), formats.tokens(item.tokens)] for item in report.regrets
    ]
    return table("Needed again", ("turn", "what", "removed at turn", "tokens"), rows)


def _notes(report: SessionReport) -> str:
    rows = [[str(note.turn), formats.local(note.at), note.text or note.kind] for note in report.notes]
    return table("Notes of readers", ("turn", "written", "note"), rows)


def _damaged(report: SessionReport) -> str:
    rows = [[str(item.turn), str(item.seq), item.type, item.problem] for item in report.damaged]
    return table("Unreadable events", ("turn", "seq", "event", "problem"), rows)


_TABLES: Final = (
    _zones, _alerts, _evictions, _compressions, _rules, _cache_breaks, _costs_by_name, _uses, _regrets, _notes,
    _damaged,
)  # fmt: skip


def _resolved(alert: AlertRow, *, live: bool) -> str:
    """Return the turn at which an alert was resolved; it fires only while its session is live."""
    if alert.resolved_turn is not None:
        return str(alert.resolved_turn)
    return "firing" if live else "never"
