"""One compression: what it made of what, and which facts it kept and lost."""

from __future__ import annotations

import streamlit as st

from windowpane.store.interface import EventReader
from windowpane.store.records import SessionRow
from windowpane.text.formats import count, dollars, seconds, tokens
from windowpane_dashboard.charts import facts_bar
from windowpane_dashboard.page import address
from windowpane_dashboard.page import store_access as access
from windowpane_dashboard.page import widget_state as moved
from windowpane_dashboard.page import widgets as elements
from windowpane_dashboard.queries.filters import SessionPlace
from windowpane_dashboard.queries.window import (
    Compression,
    compression_label,
    fact_counts,
    fact_texts,
    facts_frame,
    facts_sentence,
    sides,
)
from windowpane_dashboard.sections.before_after import before_and_after
from windowpane_dashboard.sections.timeline import PAGE

HOW_TO_CAPTURE = (
    "The texts were not kept: content capture is off by default. To see the texts of future sessions here, "
    "turn it on where they are recorded:"
)
CHOICE = "compression_choice"
CAPTURE_COMMAND = "WINDOWPANE_CAPTURE=1 windowpane import"


def compression_section(snapshot: access.Snapshot, row: SessionRow, turn: int) -> None:
    """Draw the compression of the selected turn, else the last one before it, or the one of the address."""
    found = access.compressions(snapshot, row)
    if not found:
        return
    st.subheader("Compressions", anchor=False, divider="grey")
    chosen = max((at for at, one in enumerate(found) if one.turn <= turn), default=0)
    asked = SessionPlace.from_query(st.query_params.to_dict()).compression
    if asked is not None and 1 <= asked <= len(found):
        chosen = asked - 1
    if len(found) > 1:
        key = moved.fresh_key(CHOICE, chosen, of=turn)
        st.selectbox(
            "Compression",
            range(len(found)),
            format_func=lambda at: f"{at + 1} of {len(found)}: {compression_label(found[at])}",
            key=key,
            on_change=lambda: moved.take(CHOICE, key, _choose),
            label_visibility="collapsed",
        )
    _show(snapshot.store, row, found[chosen])


def _choose(place: int) -> None:
    address.change(PAGE, compression=str(place + 1))


def _show(store: EventReader, row: SessionRow, compression: Compression) -> None:
    data = compression.data
    whole = " (whole window)" if data.scope == "window" else ""
    places = st.columns(5, gap="small")
    places[0].metric(f"Before{whole}", tokens(data.tokens_before), help="Tokens of what was replaced.")
    places[1].metric(f"After{whole}", tokens(data.tokens_after), help="Tokens of what stands for it.")
    ratio = "–" if data.ratio is None else f"{data.ratio:.1f} to 1"
    places[2].metric("Ratio", ratio, help="Original / result tokens of the replaced content; higher is smaller.")
    score = compression.fidelity.score if compression.fidelity else None
    places[3].metric("Fidelity", "–" if score is None else f"{score:.2f}", help="0 to 1; target 0.85.")
    places[4].metric("Outcome", data.outcome, help=elements.escaped(data.reason) if data.reason else None)
    parts = [f"{compression_label(compression)}; trigger {data.trigger.replace('_', ' ')}"]
    if data.method:
        parts.append(f"written by {data.method}")
    if data.duration_seconds is not None:
        parts.append(f"took {seconds(data.duration_seconds)}")
    if data.cost_dollars is not None:
        parts.append(f"cost {dollars(data.cost_dollars)}")
    st.caption(elements.escaped(", ".join(parts)))
    before, after = sides(store, row.session_id, compression)
    captured = before.captured or after.captured
    _facts(store, compression)
    if captured:
        before_and_after(before, after, fact_texts(store, compression.fidelity))
    else:
        st.caption(HOW_TO_CAPTURE)
        st.code(CAPTURE_COMMAND, language=None)


def _facts(store: EventReader, compression: Compression) -> None:
    fidelity = compression.fidelity
    if fidelity is None:
        st.text("What it kept was not evaluated.")
        return
    elements.said(f"{facts_sentence(fidelity)} Method: {fidelity.method}.")
    if not fidelity.facts_total:
        return
    counts = fact_counts(fidelity)
    elements.picture(facts_bar(counts, elements.current_palette()), key="facts_bar", alt=facts_sentence(fidelity))
    if fidelity.facts:
        frame = facts_frame(store, fidelity)
        if frame["text"].isna().all():
            frame = frame.drop(columns="text")
        with st.expander(f"The {count(len(frame), 'fact')}, lost ones first", icon=":material/table_rows:"):
            elements.table(frame, key="facts", alt="Facts of this compression")
