"""The report as one self-contained HTML file without scripts, fonts or external addresses.

All text from an agent passes `markup.escape`; a strict content security policy is the second line of defense.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from windowpane.core.vocabulary import COMPONENTS, ZONES
from windowpane.report.markup import escape
from windowpane.report.svg import window_svg
from windowpane.text import formats, palette
from windowpane.text.forecasts import compaction_level_text, next_event
from windowpane.text.labels import COMPONENT_LABELS
from windowpane.text.zones import zone_label

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from windowpane.report.session_report import SessionReport
    from windowpane.store.records import AlertRow

ROWS: Final = 200
"""Rows of each table; further rows are counted."""
UNFOLDED: Final = 12
"""Rows that are visible without unfolding."""

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def to_html(report: SessionReport) -> str:
    """Return the whole page."""
    session = report.session
    title = f"{session.agent}: context window of {session.session_id}"
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title><style>{_style()}</style></head><body><main>",
            f"<h1>{escape(report.headline)}</h1>",
            _identity(report),
            _tiles(report),
            _findings(report),
            "<h2>The window, turn by turn</h2>",
            window_svg(report) or "<p>No turn was measured.</p>",
            _legend(report),
            _tables(report),
            "<footer>Made by Windowpane. Counts marked ≈ are estimates; – is unknown.</footer>",
            "</main></body></html>",
        ]
    )


def _identity(report: SessionReport) -> str:
    session = report.session
    record = report.forecast_record.text
    limit = f"{formats.tokens(session.limit_tokens)} tokens" if session.limit_tokens else "unknown"
    origin = f" ({session.limit_source})" if session.limit_source else ""
    facts = [
        ("session", session.session_id),
        ("agent", session.agent),
        ("model", session.model or formats.UNKNOWN),
        ("source", session.source),
        ("turns", f"{session.turns:,} in {session.exchanges:,} exchanges"),
        ("limit", limit + origin),
        ("from", f"{formats.utc(session.started_at)} to {formats.utc(session.last_at)}"),
    ]
    level = compaction_level_text(session.compaction_tokens, session.compaction_evidence)
    facts += [(name, text) for name, text in (("compaction", level), ("forecasts", record)) if text]
    if session.incomplete:
        facts.append(("recording", "incomplete"))
    spans = " ".join(f"<span>{name} <b>{escape(value)}</b></span>" for name, value in facts)
    return f"<p class=identity>{spans}</p>"


def _tiles(report: SessionReport) -> str:
    session = report.session
    share = formats.percent(session.utilization, estimated=session.is_estimated)
    ahead = next_event(session)
    cached = session.cache_read_tokens / session.input_tokens if session.input_tokens else None
    values = [
        ("utilization", share, zone_label(session.zone)),
        ("peak", formats.percent(session.peak_utilization), f"{formats.tokens(session.peak_used_tokens)} tokens"),
        ("velocity", formats.tokens_short(session.velocity), "tokens per turn"),
        (f"{ahead.name} in", formats.turns_until(ahead.turns), "turns"),
        (
            "evicted",
            f"{session.evicted_blocks:,}",
            f"{formats.tokens_short(session.evicted_tokens)} tokens",
        ),
        ("fidelity", formats.ratio(session.fidelity), "probe, 0 to 1"),
        ("regrets", f"{session.regrets:,}", "fetched again"),
        ("cost", formats.dollars(session.cost_dollars), f"cache {formats.percent(cached)}"),
    ]
    tiles = "".join(
        f"<div><span>{escape(name)}</span><b>{escape(value)}</b><span>{escape(unit)}</span></div>"
        for name, value, unit in values
    )
    missing = "".join(f"<p class=quiet>Cost: {escape(sentence)}</p>" for sentence in report.missing_costs)
    return f"<section class=tiles>{tiles}</section>{missing}"


def _findings(report: SessionReport) -> str:
    rows = [
        [
            formats.dollars(finding.dollars), f"{finding.text}. {finding.advice}",
            "; ".join(f"turn {one.turn}: {one.text}" for one in finding.evidence),
        ]
        for finding in report.findings
    ]  # fmt: skip
    return _table("Findings", ("cost", "what and what to do", "evidence"), rows)


def _legend(report: SessionReport) -> str:
    visible = {component for turn in report.turns for component in turn.components if turn.components[component]}
    items = "".join(
        f'<span><i class="{component}"></i>{COMPONENT_LABELS[component]}</span>'
        for component in COMPONENTS
        if component in visible
    )
    letters = "".join(f"<span>{entry}</span>" for entry in ("E evicted", "C compressed", "R regret", "A alert"))
    return f"<p class=legend>{items}{letters}</p>"


def _tables(report: SessionReport) -> str:
    zones = [[zone_label(zone), str(report.zone_turns[zone])] for zone in ZONES if zone in report.zone_turns]
    evictions = [
        [str(item.turn), item.policy, str(item.blocks), formats.tokens(item.tokens_freed), item.reason]
        for item in report.evictions
    ]
    compressions = [
        [
            str(item.turn), item.strategy, item.outcome, item.sizes[2], formats.tokens(item.sizes[0]),
            formats.tokens(item.sizes[1]), formats.ratio(item.ratio), formats.ratio(item.content_ratio),
            formats.ratio(item.fidelity),
            f"{item.facts.damaged} of {item.facts.total}" if item.facts else formats.UNKNOWN, item.note,
        ]
        for item in report.compressions
    ]  # fmt: skip
    regrets = [
        [str(item.turn), str(item.turn_left), item.cause, formats.tokens(item.tokens)] for item in report.regrets
    ]
    alerts = [
        [
            item.severity, item.alert, str(item.fired_turn),
            _resolved(item, live=report.live), item.summary,
        ]
        for item in report.alerts
    ]  # fmt: skip
    notes = [[str(note.turn), formats.local(note.at), note.text or note.kind] for note in report.notes]
    damaged = [[str(item.turn), str(item.seq), item.type, item.problem] for item in report.damaged]
    return "".join(
        [
            _table("Turns by zone", ("zone", "turns"), zones),
            _table("Alerts", ("severity", "alert", "fired at turn", "resolved at turn", "what"), alerts),
            _table("Evictions", ("turn", "policy", "blocks", "tokens freed", "main reason"), evictions),
            _table(
                "Compressions",
                (
                    "turn",
                    "strategy",
                    "outcome",
                    "of",
                    "before",
                    "after",
                    "ratio",
                    "content ratio",
                    "fidelity",
                    "facts lost",
                    "note",
                ),
                compressions,
            ),
            _table(
                "Cache breaks",
                ("turn", "cause", "tokens sent again", "cached", "cost", "first changed block"),
                [
                    [
                        str(item.turn),
                        item.cause,
                        formats.tokens(item.rewritten_tokens),
                        formats.tokens(item.cached_tokens),
                        formats.dollars(item.dollars),
                        item.block_id or "",
                    ]
                    for item in report.cache_breaks
                ],
            ),
            _table(
                "Tools, files and commands",
                ("tool", "file or command", "blocks", "tokens", "tokens in all calls", "share of the cost"),
                [
                    [
                        use.tool,
                        use.target,
                        str(use.blocks),
                        formats.tokens(use.tokens),
                        formats.tokens(use.carried_tokens),
                        formats.dollars(use.dollars),
                    ]
                    for use in report.uses
                ],
            ),
            _table("Regrets", ("turn", "removed at turn", "removed by", "tokens"), regrets),
            _table("Notes of readers", ("turn", "written", "note"), notes),
            _table("Unreadable events", ("turn", "seq", "event", "problem"), damaged),
        ]
    )


def _resolved(alert: AlertRow, *, live: bool) -> str:
    """Return the turn at which an alert was resolved; it fires only while its session is live."""
    if alert.resolved_turn is not None:
        return str(alert.resolved_turn)
    return "firing" if live else "never"


def _table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table under its title; the rows of a long one continue in a folded part."""
    if not rows:
        return ""
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)

    def part(rows: Sequence[Sequence[str]]) -> str:
        body = "".join(_row(row) for row in rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    folded = rows[UNFOLDED:ROWS]
    more = f"<p>and {len(rows) - ROWS:,} more</p>" if len(rows) > ROWS else ""
    rest = f"<details><summary>{len(folded)} more</summary>{part(folded)}{more}</details>" if folded else ""
    return f"<h2>{escape(title)}</h2>{part(rows[:UNFOLDED])}{rest}"


def _row(cells: Iterable[str]) -> str:
    return "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"


def _style() -> str:
    """Return the style sheet, with all colors from the palette."""

    def colors(index: int) -> str:
        areas = [
            f".{name}{{fill:{tone[index]};background:{tone[index]}}}"
            for name, tone in palette.COMPONENT_TONES.items()
        ]
        red = palette.ZONE_TONES["red"][index]
        return "".join(areas) + f".line-red{{stroke:{red}}}.label-red{{fill:{red}}}.mark-A,.mark-R{{fill:{red}}}"

    def backgrounds(index: int) -> str:
        return (
            f":root{{--ground:{palette.GROUND[index]};--ink:{palette.INK[index]};"
            f"--quiet:{palette.QUIET[index]};--rule:{palette.RULE[index]}}}"
        )

    dark = backgrounds(1) + colors(1)
    return backgrounds(0) + _LAYOUT + colors(0) + f"@media(prefers-color-scheme:dark){{{dark}}}"


_LAYOUT: Final = (
    "body{margin:0;background:var(--ground);color:var(--ink);font:15px/1.5 system-ui,sans-serif;"
    "font-variant-numeric:tabular-nums}main{max-width:1080px;margin:0 auto;padding:24px}"
    "h1{font-size:22px;line-height:1.3;margin:0 0 8px}h2{font-size:16px;margin:28px 0 8px}"
    ".identity span{display:inline-block;margin-right:16px;color:var(--quiet)}.identity b{color:var(--ink);"
    "font-weight:500;overflow-wrap:anywhere}"
    ".tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(112px,1fr));gap:1px;background:var(--rule);"
    "border:1px solid var(--rule)}.tiles div{background:var(--ground);padding:8px 12px}"
    ".tiles span{display:block;color:var(--quiet);font-size:12px}.tiles b{font-size:20px;font-weight:600}"
    ".quiet{color:var(--quiet);margin:6px 0}"
    "svg{width:100%;height:auto;display:block}.grid{stroke:var(--rule)}.axis{fill:var(--quiet);font-size:11px}"
    ".line-limit,.line-red{fill:none;stroke-width:1.5}.line-limit{stroke:var(--ink)}"
    ".line-red{stroke-dasharray:4 4}"
    ".label-limit{fill:var(--ink);font-size:11px}.label-red{font-size:11px}.mark{font-size:12px;font-weight:700;"
    "fill:var(--ink)}.legend span{display:inline-block;margin-right:16px;color:var(--quiet);font-size:13px}"
    ".legend i{display:inline-block;width:10px;height:10px;margin-right:6px}"
    "table{border-collapse:collapse;width:100%;font-size:13px}th{text-align:left;color:var(--quiet);font-weight:500}"
    "th,td{padding:4px 12px 4px 0;border-bottom:1px solid var(--rule);vertical-align:top;overflow-wrap:anywhere}"
    "summary{margin:8px 0;color:var(--quiet);font-size:13px;cursor:pointer}"
    "footer{margin-top:32px;color:var(--quiet);font-size:12px}"
)
