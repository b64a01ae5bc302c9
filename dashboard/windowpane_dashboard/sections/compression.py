"""One compaction: its sizes, the outcome of its facts, and both sides next to each other.

The content is an agent's: every character is escaped for Markdown, and nothing is given to the browser as HTML.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Final

import streamlit as st

from windowpane.core.characters import plain
from windowpane.core.events import FidelityEvaluated
from windowpane.report.regrowth import Regrowth, read_regrowth
from windowpane.report.rule_survival import reported_rules
from windowpane.store.reads.project_reader import EventReader
from windowpane.store.records import SessionRow
from windowpane.text.formats import count, dollars, seconds
from windowpane.text.losses import soundness_text, worst_texts
from windowpane_dashboard.page import address, store_access, widget_state, widgets
from windowpane_dashboard.page.store_access import StoreSnapshot
from windowpane_dashboard.queries.compressions import (
    ContentSide,
    DiffLine,
    DiffPiece,
    DiffSide,
    EvaluatedCompression,
    TextDifference,
    compression_label,
    damage_summary,
    fact_texts,
    facts_frame,
    facts_summary,
    first_to_read,
    sentence,
    sides,
    text_difference,
    worst_first,
)
from windowpane_dashboard.queries.filters import SessionAddress
from windowpane_dashboard.sections.block_panel import how_to_capture
from windowpane_dashboard.sections.timeline import PAGE
from windowpane_dashboard.style.sanitize import escape_markdown, sanitized

CHOICE = "compression_choice"
PIXELS: Final = 380
SLOW_SECONDS: Final = 1.0
"""A compaction that took less does not state its time."""
WORST_FACTS: Final = 10
"""Contradicted and lost facts in full."""
MARKERS: Final = {"same": "\u2007", "removed": "−", "new": "\\+"}
_FACTS: Final = {
    "kept": ("green", "✓"),
    "recoverable": ("grey", "↺"),
    "lost": ("red", "✕"),
    "contradicted": ("violet", "≠"),
}


def compression_section(snapshot: StoreSnapshot, row: SessionRow, turn: int) -> None:
    """Draw the compression of the address, else the one to read first."""
    recorded = store_access.compressions(snapshot, row)
    if not recorded:
        st.text("No compaction of this session can be read.")
        return
    position = SessionAddress.from_query(st.query_params.to_dict())
    chosen = first_to_read(recorded, turn, is_turn_chosen=position.turn is not None)
    requested = position.compression
    if requested is not None and 1 <= requested <= len(recorded):
        chosen = requested - 1
    if len(recorded) > 1:
        st.text(damage_summary(recorded))
        key = widget_state.fresh_key(CHOICE, chosen, scope=turn)
        st.selectbox(
            "Compaction",
            worst_first(recorded),
            format_func=lambda at: plain(compression_label(recorded[at])),
            key=key,
            on_change=lambda: widget_state.apply(CHOICE, key, _choose),
            label_visibility="collapsed",
        )
    regrowth = _regrowth(snapshot.store, row, recorded, chosen)
    with st.container(key="compression"):
        _show(snapshot.store, row, recorded[chosen], regrowth)


def _choose(index: int) -> None:
    address.update(PAGE, compression=str(index + 1))


def _regrowth(
    store: EventReader, row: SessionRow, recorded: Sequence[EvaluatedCompression], chosen: int
) -> Regrowth | None:
    """Return the window after the chosen compression; None where it was no compaction."""
    if not recorded[chosen].data.is_compaction:
        return None
    following = next((one.turn for one in recorded[chosen + 1 :] if one.data.is_compaction), None)
    turns = store.turns(row.session_id)
    return read_regrowth(store, row.session_id, turns, compacted_turn=recorded[chosen].turn, next_turn=following)


def _show(
    store: EventReader, row: SessionRow, compression: EvaluatedCompression, regrowth: Regrowth | None
) -> None:
    data = compression.data
    authors = {"extractive": "without a model", "agent": "by the agent", None: ""}
    author = authors.get(data.method, f"by {data.method}")
    parts = [f"at turn {compression.turn}, {compression.change} {author}".rstrip()]
    if data.outcome != "accepted":
        parts = [": ".join(filter(None, (f"{data.outcome} at turn {compression.turn}", data.reason)))]
    if data.duration_seconds is not None and data.duration_seconds >= SLOW_SECONDS:
        parts.append(f"took {seconds(data.duration_seconds)}")
    if data.cost_dollars is not None:
        parts.append(f"cost {dollars(data.cost_dollars)}")
    refilled = "" if regrowth is None or not regrowth.turns else sentence(regrowth.text)
    widgets.show_text(f"{sentence(', '.join(parts))} {refilled}".rstrip())
    before, after = sides(store, row.session_id, compression)
    captured = before.captured or after.captured
    _rules(store, compression)
    _facts(store, compression.fidelity)
    if captured:
        before_and_after(before, after, fact_texts(store, compression.fidelity))
    else:
        how_to_capture()


def _rules(store: EventReader, compression: EvaluatedCompression) -> None:
    """Draw how many standing instructions stayed visible, and those that were lost or reversed."""
    if compression.rules is None or compression.rules.survival is None:
        return
    rules = reported_rules(compression.rules, compression.turn, store.content)
    lost = [sentence(rule.label) for rule in rules.lost if rule.text]
    widgets.show_text("\n".join([sentence(rules.summary), *lost]))


def _facts(store: EventReader, fidelity: FidelityEvaluated | None) -> None:
    """Draw what became of the facts, the worst in full, and all of them where that is switched on."""
    if fidelity is None:
        st.text("Its facts were not looked up.")
        return
    soundness = "" if fidelity.facts_contradicted and not fidelity.form else sentence(soundness_text(fidelity))
    lines = [f"{facts_summary(fidelity)} {soundness}".rstrip()]
    lines += [f"Not measured: {what}." for what in fidelity.unmeasured]
    lines += map(sentence, islice(worst_texts(fidelity, store.content), WORST_FACTS))
    widgets.show_text("\n".join(lines))
    if fidelity.facts and st.toggle(f"Show all {count(len(fidelity.facts), 'fact')}", key="all_facts"):
        frame = widgets.without_empty(facts_frame(store, fidelity), "text")
        widgets.table(frame, key="facts", alt="Facts of this compaction")


def before_and_after(before: ContentSide, after: ContentSide, facts: dict[str, str]) -> None:
    """Draw both sides next to each other with a legend."""
    difference = _whole_or_start(
        [text for text in before.texts if text is not None],
        [text for text in after.texts if text is not None],
        facts,
    )
    st.markdown(legend(difference))
    left, right = st.columns(2, gap="medium")
    for column, title, side, visible in (
        (left, "Before", before, difference.before),
        (right, "After", after, difference.after),
    ):
        with column:
            lines = count(len(visible.lines) + visible.omitted, "line")
            st.markdown(f"**{title}**: {count(len(side.blocks), 'item')}, {lines}")
            if visible.lines:
                with st.container(height=PIXELS, key=f"side_{title.lower()}"):
                    st.markdown("  \n".join(line_markdown(line) for line in visible.lines))
            _omissions(side, visible)


def _whole_or_start(before: list[str], after: list[str], facts: dict[str, str]) -> TextDifference:
    """Return the start of both sides, or the part of the whole that the controls select."""
    difference = text_difference(before, after, facts)
    if difference.is_whole or not st.toggle("Show both sides in full", key="whole_difference"):
        return difference
    part = 1
    if difference.parts > 1:
        part = int(st.number_input(f"Part, of {difference.parts:,}", 1, difference.parts, key="difference_part"))
    return text_difference(before, after, facts, part=part)


def legend(difference: TextDifference) -> str:
    """Return the markers in use, as Markdown."""
    marked = {
        piece.outcome
        for visible in (difference.before, difference.after)
        for line in visible.lines
        for piece in line.pieces
        if piece.outcome
    }
    facts = [
        f":{color}-background[{marker} {name}]" for name, (color, marker) in _FACTS.items() if name in marked
    ]
    markers = ["− only before", "+ only after", "unmarked: in both"]
    return ":small[" + " · ".join([*markers, *facts]) + "]"


def line_markdown(line: DiffLine) -> str:
    """Return one line as Markdown in which nothing of the text is markup."""
    return f"{MARKERS[line.state]} " + "".join(_piece_markdown(piece) for piece in line.pieces)


def _piece_markdown(piece: DiffPiece) -> str:
    text = _escape_piece(piece.text)
    if piece.outcome is None or not text.strip():
        return text
    color, marker = _FACTS[piece.outcome]
    return f":{color}-background[{marker}\u00a0{text.strip()}]"


def _escape_piece(text: str) -> str:
    """Return escaped text with its spaces; control and direction characters are replaced."""
    seen = sanitized(text.replace("\t", " "), length=len(text))
    inner = escape_markdown(seen)
    before = len(seen) - len(seen.lstrip())
    return "\u00a0" * before + inner + (" " if seen != seen.rstrip() and inner else "")


def _omissions(side: ContentSide, visible: DiffSide) -> None:
    missing = sum(text is None for text in side.texts)
    notes = [f"{count(visible.omitted, 'line')} above and below not shown"] if visible.omitted else []
    notes += [f"{count(missing, 'item')} without captured content"] if missing else []
    if notes:
        st.caption(f"{'; '.join(notes)}.")
