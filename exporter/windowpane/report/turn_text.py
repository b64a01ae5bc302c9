"""The report on one turn as text: 80 columns, readable without color and without Unicode."""

from __future__ import annotations

from typing import Final

from windowpane.core.vocabulary import COMPONENTS
from windowpane.report.block_life import block_name
from windowpane.report.text import text_page
from windowpane.report.turn_report import TurnReport
from windowpane.text import formats
from windowpane.text.labels import COMPONENT_LABELS

ROWS: Final = 12
"""Rows of each section; further rows are counted."""


def turn_to_text(report: TurnReport, *, unicode: bool = True) -> str:
    """Return the whole report in lines of at most 80 columns."""
    sections = [_head(report), _composition(report), _largest(report), _removed(report), _events(report)]
    return text_page(sections, unicode=unicode)


def _head(report: TurnReport) -> list[str]:
    turn = report.turn
    calls = [
        f"change {formats.tokens_short(report.change_tokens, signed=True)}",
        f"input {formats.tokens(turn.input_tokens)}",
        f"output {formats.tokens(turn.output_tokens)}",
        f"cost {formats.dollars(turn.cost_dollars)}",
    ]
    return [report.session.session_id, f"at {formats.local(turn.at)}", "", report.headline, "   ".join(calls)]


def _composition(report: TurnReport) -> list[str]:
    sizes = report.turn.components
    rows = [f"  {COMPONENT_LABELS[name]:<20}{sizes[name]:>12,}" for name in COMPONENTS if sizes.get(name)]
    return ["Composition, tokens", *rows] if rows else []


def _largest(report: TurnReport) -> list[str]:
    ordered = sorted(report.blocks, key=lambda one: -one.tokens)
    rows = [
        f"  {formats.tokens(one.tokens, estimated=one.is_estimated):>10}  "
        f"{' '.join(filter(None, (block_name(one.block), one.block.target)))}"
        for one in ordered
    ]
    return _listed("Largest blocks, tokens", rows)


def _removed(report: TurnReport) -> list[str]:
    rows = [
        f"  {formats.tokens(row.tokens):>10}  {block_name(row)}: {row.reason or row.removed_by}"
        for row in report.removed
    ]
    return _listed("Removed at this turn, tokens", rows)


def _events(report: TurnReport) -> list[str]:
    return _listed("Events", [f"  {event.text}" for event in report.events])


def _listed(title: str, rows: list[str]) -> list[str]:
    more = [f"  and {len(rows) - ROWS:,} more"] if len(rows) > ROWS else []
    return [title, *rows[:ROWS], *more] if rows else []
