"""The names by which people recognize a session, in texts, pickers and tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from textwrap import shorten
from typing import Final
from urllib.parse import quote

from windowpane.core.characters import plain
from windowpane.core.names import repository_name
from windowpane.store.reads.project_reader import EventReader
from windowpane.store.records import SessionRow
from windowpane.text.formats import UNKNOWN
from windowpane_dashboard.queries.filters import SessionAddress

LENGTH: Final = 120
"""Characters of a title."""
TITLE_OF_LINK: Final = r"#(.+)$"
"""The text that a column of `titled_url` shows."""


def session_title(row: SessionRow) -> str:
    """Return the title of a session; its id where none is known."""
    return row.title[:LENGTH] if row.title else row.session_id


def short_title(row: SessionRow) -> str:
    """Return the start of the title, which fits four lines of a narrow column."""
    return shorten(session_title(row), 52, placeholder="…")


def project(row: SessionRow) -> str:
    """Return the repository or folder, with its branch: `windowpane, next`."""
    base = repository_name(row.repository, row.folder)
    return ", ".join(part for part in (base, row.branch) if part) or UNKNOWN


def picker_label(row: SessionRow) -> str:
    """Return the line of a session in a list to choose from: its title, project, agent and id."""
    names = [row.title[:LENGTH], project(row)] if row.title else []
    return "  ·  ".join(part for part in (*names, row.agent, row.session_id) if part and part != UNKNOWN)


def titled_url(row: SessionRow) -> str:
    """Return the address of a session with its title as the fragment, which a column of links shows.

    That of a sub-agent is marked with `└`.
    """
    return link_url(SessionAddress(row.session_id), {row.session_id: row})


def link_url(position: SessionAddress, rows: Mapping[str, SessionRow]) -> str:
    """Return an address with the title of its session likewise; *rows* may lack a deleted session."""
    row = rows.get(position.session or "")
    title = position.session or ""
    if row is not None:
        title = f"{'└ ' if row.parent_session_id else ''}{session_title(row)}"
    return f"{position.url()}#{quote(plain(title), safe=' ')}"


def sessions_by_id(
    reader: EventReader, names: Iterable[str], *, recent: Iterable[SessionRow]
) -> dict[str, SessionRow]:
    """Return the stored sessions of *names*; those that are not in *recent* are read one by one."""
    rows = {row.session_id: row for row in recent}
    stored = ((name, rows.get(name) or reader.session(name)) for name in dict.fromkeys(names))
    return {name: row for name, row in stored if row is not None}
