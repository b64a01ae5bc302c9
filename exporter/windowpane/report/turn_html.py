"""The report on one turn as one self-contained HTML file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windowpane.core.vocabulary import COMPONENT_OF, COMPONENTS
from windowpane.report.block_life import block_name
from windowpane.report.html_page import html_page, identity, legend, table, tiles
from windowpane.report.markup import escape
from windowpane.report.turn_report import TurnReport, WindowBlock
from windowpane.text import formats
from windowpane.text.labels import COMPONENT_LABELS

if TYPE_CHECKING:
    from windowpane.store.records import BlockRow


def turn_to_html(report: TurnReport) -> str:
    """Return the whole page."""
    session = report.session
    return html_page(
        f"{session.agent}: turn {report.turn.turn} of {session.session_id}",
        f"<h1>{escape(report.headline)}</h1>",
        identity(
            [
                ("session", session.session_id),
                ("agent", session.agent),
                ("model", report.turn.model or formats.UNKNOWN),
                ("turn", f"{report.turn.turn:,} of {session.turns:,}"),
                ("at", formats.utc(report.turn.at)),
            ]
        ),
        _tiles(report),
        "<h2>The window, in the order the model saw it</h2>",
        _strip(report),
        _tables(report),
    )


def _tiles(report: TurnReport) -> str:
    turn = report.turn
    cached = None
    if turn.input_tokens and turn.cache_read_tokens is not None:
        cached = turn.cache_read_tokens / turn.input_tokens
    return tiles(
        [
            ("change", formats.tokens_short(report.change_tokens, signed=True), "tokens"),
            ("input", formats.tokens(turn.input_tokens), "tokens"),
            ("from the cache", formats.percent(cached), "of the input"),
            ("output", formats.tokens(turn.output_tokens), "tokens"),
            ("cost", formats.dollars(turn.cost_dollars), "of this call"),
            ("took", formats.seconds(turn.latency_seconds), ""),
        ]
    )


def _strip(report: TurnReport) -> str:
    drawn = "".join(
        f'<i class="{COMPONENT_OF[one.block.content_type]}" style="flex:{one.tokens}" '
        f'title="{escape(_name(one.block))}, {_size(one)} tokens"></i>'
        for one in report.blocks
        if one.tokens > 0
    )
    free = (report.turn.limit_tokens or 0) - sum(one.tokens for one in report.blocks)
    room = f'<i class=free style="flex:{free}"></i>' if free > 0 else ""
    seen = legend(name for name in COMPONENTS if report.turn.components.get(name))
    return f"<div class=strip>{drawn}{room}</div><p class=legend>{seen}</p>"


def _size(one: WindowBlock) -> str:
    return formats.tokens(one.tokens, estimated=one.is_estimated)


def _name(block: BlockRow) -> str:
    return f"{block_name(block)}: {block.target}" if block.target else block_name(block)


def _tables(report: TurnReport) -> str:
    sizes = report.turn.components
    components = [
        [COMPONENT_LABELS[name], formats.tokens(sizes[name]), formats.percent(sizes[name] / sum(sizes.values()))]
        for name in COMPONENTS
        if sizes.get(name)
    ]
    blocks = [
        [
            _name(one.block), _size(one), str(one.block.turn_added), one.block.block_id, one.block.preview or "",
        ]
        for one in report.blocks
    ]  # fmt: skip
    removed = [
        [_name(row), formats.tokens(row.tokens, estimated=row.count_source == "estimate"), str(row.turn_added),
         row.removed_by or "", row.reason, row.block_id]
        for row in report.removed
    ]  # fmt: skip
    return "".join(
        [
            table("Components", ("component", "tokens", "share"), components),
            table("Alerts", ("severity", "alert", "what"),
                  [[item.severity, item.alert, item.summary] for item in report.alerts]),
            table("Notes of readers", ("written", "note"),
                  [[formats.local(note.at), note.text or note.kind] for note in report.notes]),
            table("Removed at this turn", ("what", "tokens", "since turn", "how", "why", "block"), removed),
            table("Blocks of the window", ("what", "tokens", "since turn", "block", "text"), blocks),
            table("Events of the turn", ("seq", "event", "what"),
                  [[str(event.seq), event.type, event.text] for event in report.events]),
        ]
    )  # fmt: skip
