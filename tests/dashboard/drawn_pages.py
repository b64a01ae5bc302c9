"""The numbers that the session page writes, by the names of `surfaces`, read from its drawn elements."""

from __future__ import annotations

import re
from collections.abc import Callable

from streamlit.testing.v1 import AppTest
from tests.dashboard.surfaces import StoredSession, Values, compared, of_row

OpenPage = Callable[..., AppTest]

METRICS = {"Cost": "cost"}
SENTENCES: tuple[str, ...] = (
    r"model [^·]+ · (?:source \S+ · )?(?P<turns>[\d,]+) turns?",
    r"turns?, and turn (?P<open_turn>\d+) has not ended",
    r"; turn (?P<open_turn>\d+) has not ended",
    r"(?:in|turns) (?P<turns>[\d,]+) turns?[.;]",
    r"· limit (?P<limit>[\d,]+) ",
    r"(?:at most|highest) (?P<peak_utilization>\S+%) of ",
    r"at most (?P<peak_tokens>[\d,]+) tokens were sent",
    r"(?P<blocks_evicted>[\d,]+) items? removed, (?P<tokens_evicted>[\d,]+) tokens",
    r"(?P<compressions>[\d,]+) compactions? (?:lost|with)",
    r"(?P<regrets>[\d,]+) removed items? (?:was|were) needed again",
    r"(?P<turns>[\d,]+) turns?(?:, and turn \d+ has not ended)?\. Select a row",
)
"""A sentence of the page with its numbers."""


def drawn_values(page: AppTest) -> list[Values]:
    """Return the values of each metric and sentence of a page, one by one."""
    texts = [str(one.value) for kind in (page.caption, page.markdown, page.text) for one in kind]
    text = "\n".join(" ".join(re.sub(r"\\(.)", r"\1", one).replace("&nbsp;", " ").split()) for one in texts)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    drawn: list[Values] = [
        {METRICS[one.label]: one.value} for one in page.metric if one.label in METRICS and one.value != "–"
    ]
    for pattern in SENTENCES:
        drawn += [
            {name.replace("_", " "): value for name, value in found.groupdict().items()}
            for found in re.finditer(pattern, text)
        ]
    return drawn


def drawn_disagreements(session: StoredSession, open_page: OpenPage) -> list[str]:
    """Return a line for each number of the session page, on its tabs of blocks and turns, that the list lacks."""
    row, latest = session.row, session.timeline.latest
    expected = {
        **of_row(session),
        "open turn": None if session.timeline.open_turn is None else str(session.timeline.open_turn),
        "burn rate": None if latest is None else latest.burn_rate,
    }
    lines: list[str] = []
    for tab in ("blocks", "turns"):
        page = open_page("session", session=row.session_id, tab=tab)
        lines += [f"{row.session_id}: {error.value}" for error in page.exception]
        for number, values in enumerate(drawn_values(page)):
            lines += compared(row.session_id, {"list": expected, f"{tab} page, text {number}": values})
        lines += _tables(session, page, tab)
    return lines


def _tables(session: StoredSession, page: AppTest, tab: str) -> list[str]:
    """Return a line where a table has other sums than the measured turns."""
    turns = session.timeline.turns
    tables = [table.value for table in page.dataframe]
    drawn: dict[str, Values] = {}
    for table in tables:
        if tab == "turns" and {"turn", "change", "tokens"} <= set(table):
            drawn["table of turns"] = {"measured": len(table), "last": table["tokens"].iloc[-1]}
        elif tab == "blocks" and {"from turn", "what"} <= set(table):
            size = "tokens" if "tokens" in table else "≈ tokens"
            drawn["table of blocks"] = {"last": table[size].sum()}
    if turns.empty:
        return []
    expected = {"measured": len(turns), "last": turns["used"].iloc[-1]}
    return compared(session.row.session_id, {"turns": expected, **drawn})
