"""One compression: what it made of what, and which facts it kept and lost."""

from __future__ import annotations

import unicodedata
from typing import Final

import streamlit as st

from windowpane.store.interface import EventReader
from windowpane.store.records import SessionRow
from windowpane.text.formats import count, dollars, seconds, tokens
from windowpane_dashboard.charts.facts import facts_bar
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
    fact_counts,
    fact_texts,
    facts_frame,
    facts_summary,
    sides,
    text_difference,
)
from windowpane_dashboard.queries.filters import SessionAddress
from windowpane_dashboard.sections.timeline import PAGE
from windowpane_dashboard.style.sanitize import escape_markdown

HOW_TO_CAPTURE = (
    "The texts were not kept: content capture is off by default. To see the texts of future sessions here, "
    "turn it on where they are recorded:"
)
CHOICE = "compression_choice"
CAPTURE_COMMAND = "WINDOWPANE_CAPTURE=1 windowpane import"
PIXELS: Final = 380
SIGNS: Final = {"same": "\u2007", "gone": "−", "new": "\\+"}
_FACTS: Final = {
    "kept": ("green", "✓"),
    "recoverable": ("grey", "↺"),
    "lost": ("red", "✕"),
    "contradicted": ("violet", "≠"),
}


def compression_section(snapshot: StoreSnapshot, row: SessionRow, turn: int) -> None:
    """Draw the compression of the selected turn, else the last one before it, or the one of the address."""
    found = store_access.compressions(snapshot, row)
    if not found:
        return
    st.subheader("Compressions", anchor=False, divider="grey")
    chosen = max((at for at, one in enumerate(found) if one.turn <= turn), default=0)
    asked = SessionAddress.from_query(st.query_params.to_dict()).compression
    if asked is not None and 1 <= asked <= len(found):
        chosen = asked - 1
    if len(found) > 1:
        key = widget_state.fresh_key(CHOICE, chosen, of=turn)
        st.selectbox(
            "Compression",
            range(len(found)),
            format_func=lambda at: f"{at + 1} of {len(found)}: {compression_label(found[at])}",
            key=key,
            on_change=lambda: widget_state.apply(CHOICE, key, _choose),
            label_visibility="collapsed",
        )
    _show(snapshot.store, row, found[chosen])


def _choose(place: int) -> None:
    address.update(PAGE, compression=str(place + 1))


def _show(store: EventReader, row: SessionRow, compression: EvaluatedCompression) -> None:
    data = compression.data
    whole = " (whole window)" if data.scope == "window" else ""
    places = st.columns(5, gap="small")
    places[0].metric(f"Before{whole}", tokens(data.tokens_before), help="Tokens of what was replaced.")
    places[1].metric(f"After{whole}", tokens(data.tokens_after), help="Tokens of what stands for it.")
    ratio = "–" if data.ratio is None else f"{data.ratio:.1f} to 1"
    places[2].metric("Ratio", ratio, help="Original / result tokens of the replaced content; higher is smaller.")
    score = compression.fidelity.score if compression.fidelity else None
    places[3].metric("Fidelity", "–" if score is None else f"{score:.2f}", help="0 to 1; target 0.85.")
    places[4].metric("Outcome", data.outcome, help=escape_markdown(data.reason) if data.reason else None)
    parts = [f"{compression_label(compression)}; trigger {data.trigger.replace('_', ' ')}"]
    if data.method:
        parts.append(f"written by {data.method}")
    if data.duration_seconds is not None:
        parts.append(f"took {seconds(data.duration_seconds)}")
    if data.cost_dollars is not None:
        parts.append(f"cost {dollars(data.cost_dollars)}")
    st.caption(escape_markdown(", ".join(parts)))
    before, after = sides(store, row.session_id, compression)
    captured = before.captured or after.captured
    _facts(store, compression)
    if captured:
        before_and_after(before, after, fact_texts(store, compression.fidelity))
    else:
        st.caption(HOW_TO_CAPTURE)
        st.code(CAPTURE_COMMAND, language=None)


def _facts(store: EventReader, compression: EvaluatedCompression) -> None:
    fidelity = compression.fidelity
    if fidelity is None:
        st.text("What it kept was not evaluated.")
        return
    widgets.show_text(f"{facts_summary(fidelity)} Method: {fidelity.method}.")
    if not fidelity.facts_total:
        return
    counts = fact_counts(fidelity)
    widgets.chart(facts_bar(counts, widgets.current_palette()), key="facts_bar", alt=facts_summary(fidelity))
    if fidelity.facts:
        frame = facts_frame(store, fidelity)
        if frame["text"].isna().all():
            frame = frame.drop(columns="text")
        with st.expander(f"The {count(len(frame), 'fact')}, lost ones first", icon=":material/table_rows:"):
            widgets.table(frame, key="facts", alt="Facts of this compression")


def before_and_after(before: ContentSide, after: ContentSide, facts: dict[str, str]) -> None:
    """Draw both sides beside each other with a legend."""
    found = text_difference(
        [text for text in before.texts if text is not None],
        [text for text in after.texts if text is not None],
        facts,
    )
    st.markdown(legend(found))
    left, right = st.columns(2, gap="medium")
    for place, title, side, shown in (
        (left, "Before", before, found.before),
        (right, "After", after, found.after),
    ):
        with place:
            st.markdown(f"**{title}**: {count(len(side.blocks), 'block')}, {_lines_words(shown)}")
            if shown.lines:
                with st.container(height=PIXELS, key=f"side_{title.lower()}"):
                    st.markdown("  \n".join(line_markdown(line) for line in shown.lines))
            _left_out(side, shown)


def legend(found: TextDifference) -> str:
    """The signs in use, as Markdown."""
    marked = {
        piece.outcome
        for shown in (found.before, found.after)
        for line in shown.lines
        for piece in line.pieces
        if piece.outcome
    }
    facts = [f":{color}-background[{sign} {name}]" for name, (color, sign) in _FACTS.items() if name in marked]
    signs = ["− only before", "+ only after", "no sign: in both"]
    return ":small[" + " · ".join([*signs, *facts]) + "]"


def line_markdown(line: DiffLine) -> str:
    """One line as Markdown in which nothing of the text is markup."""
    return f"{SIGNS[line.state]} " + "".join(_piece_words(piece) for piece in line.pieces)


def _piece_words(piece: DiffPiece) -> str:
    text = _inert(piece.text)
    if piece.outcome is None or not text.strip():
        return text
    color, sign = _FACTS[piece.outcome]
    return f":{color}-background[{sign}\u00a0{text.strip()}]"


def _inert(text: str) -> str:
    """Escaped, spaces kept; control and direction characters replaced, so that no line turns another around."""
    seen = "".join(
        " " if character == "\t" else "\ufffd" if unicodedata.category(character) in ("Cc", "Cf") else character
        for character in text
    )
    inner = escape_markdown(seen)
    before = len(seen) - len(seen.lstrip())
    return "\u00a0" * before + inner + (" " if seen != seen.rstrip() and inner else "")


def _lines_words(shown: DiffSide) -> str:
    return f"{count(shown.changed, 'line')} of {len(shown.lines) + shown.left_out:,} only here"


def _left_out(side: ContentSide, shown: DiffSide) -> None:
    missing = sum(text is None for text in side.texts)
    notes = [f"{count(shown.left_out, 'further line')} not shown"] if shown.left_out else []
    notes += [f"{count(missing, 'block')} without a captured text"] if missing else []
    if notes:
        st.caption(f"{'; '.join(notes)}.")
