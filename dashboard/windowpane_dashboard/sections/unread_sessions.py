"""The sessions of this machine that an import lists before it reads them: one that is opened is read at once."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Any, Final

import pandas as pd
import streamlit as st

from windowpane.config.paths import default_store, local_base
from windowpane.core.names import repository_name
from windowpane.sources.imports.noted_outlines import SessionOutline, outlined_sessions
from windowpane.sources.imports.progress import running_import
from windowpane.text.formats import UNKNOWN, ago, count, dollars, tokens_short
from windowpane_dashboard.page import widgets
from windowpane_dashboard.page.session_import import OPENED

TABLE: Final = "unread_table"
REFRESH_SECONDS: Final = 2.0


def unread_sessions(stored: Collection[str] = (), text: str | None = None) -> None:
    """Draw the sessions that a running import has not read yet, but those in *stored*; nothing without one."""
    if running_import(local_base(default_store())) is not None:
        _list(stored, text)


@st.fragment(run_every=REFRESH_SECONDS)
def _list(stored: Collection[str], text: str | None) -> None:
    outlines = [
        one
        for one in outlined_sessions(local_base(default_store()))
        if one.session_id not in stored and _matches(one, (text or "").casefold())
    ]
    if not outlines:
        return
    outlines.sort(key=lambda one: one.last_at or 0.0, reverse=True)
    st.caption(f"{count(len(outlines), 'session')} of this machine not read yet. Select one to read it at once.")
    now = time.time()
    widgets.table(
        pd.DataFrame([_record(one, now) for one in outlines]),
        key=TABLE,
        alt="Sessions that are not read yet, the latest first",
        on_select=lambda: None,
        selection_mode="single-row",
        height="content" if len(outlines) <= 16 else 560,
    )
    chosen = st.session_state[TABLE].selection.rows
    if chosen and chosen[0] < len(outlines):
        st.session_state[OPENED] = session_id = outlines[chosen[0]].session_id
        st.switch_page("views/session.py", query_params={"session": session_id})


def _matches(outline: SessionOutline, text: str) -> bool:
    names = (outline.session_id, outline.agent, outline.title, outline.folder, outline.repository, outline.branch)
    return any(text in name.casefold() for name in names)


def _record(outline: SessionOutline, now: float) -> dict[str, Any]:
    base = repository_name(outline.repository, outline.folder)
    tokens = "" if outline.last_tokens is None else tokens_short(outline.last_tokens)
    limit = "" if outline.limit_tokens is None else f" / {tokens_short(outline.limit_tokens)}"
    cost = UNKNOWN if outline.cost_dollars is None else dollars(outline.cost_dollars)
    return {
        "last call": f"{tokens}{limit}" if tokens else UNKNOWN,
        "compactions": UNKNOWN if outline.compactions is None else str(outline.compactions or ""),
        "session": f"{'└ ' if outline.parent_session_id else ''}{outline.title or outline.session_id}",
        "cost": f"≥ {cost}" if outline.is_cost_partial and outline.cost_dollars is not None else cost,
        "repository": ", ".join(part for part in (base, outline.branch) if part) or UNKNOWN,
        "last": ago(outline.last_at, now),
    }
