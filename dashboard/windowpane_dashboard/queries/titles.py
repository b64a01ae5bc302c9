"""The names by which people recognize a session, in texts, pickers and tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath, PureWindowsPath
from typing import Final
from urllib.parse import quote

from windowpane.core.characters import plain
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


def project(row: SessionRow) -> str:
    """Return the repository or folder, with its branch: `windowpane, next`."""
    base = _name(row.repository.removesuffix(".git")) or _name(row.folder)
    return ", ".join(part for part in (base, row.branch) if part) or UNKNOWN


def picker_label(row: SessionRow) -> str:
    """Return the line of a session in a list to choose from: its title, project, agent and id."""
    names = [row.title[:LENGTH], project(row)] if row.title else []
    return "  ·  ".join(part for part in (*names, row.agent, row.session_id) if part and part != UNKNOWN)


def titled_url(row: SessionRow, *, turn: int | None = None) -> str:
    """Return the address of a session with its title as the fragment, which a column of links shows.

    That of a sub-agent is marked with `└`.
    """
    title = f"{'└ ' if row.parent_session_id else ''}{session_title(row)}"
    return f"{SessionAddress(row.session_id, turn).url()}#{quote(plain(title), safe=' ')}"


def link_url(session_id: str, rows: Mapping[str, SessionRow], *, turn: int) -> str:
    """Return the address of a session at a turn, for a column of links; *rows* may lack a deleted session."""
    row = rows.get(session_id)
    if row is not None:
        return titled_url(row, turn=turn)
    return f"{SessionAddress(session_id, turn).url()}#{quote(plain(session_id), safe=' ')}"


def sessions_by_id(
    reader: EventReader, names: Iterable[str], *, recent: Iterable[SessionRow]
) -> dict[str, SessionRow]:
    """Return the stored sessions of *names*; those that are not in *recent* are read one by one."""
    rows = {row.session_id: row for row in recent}
    stored = ((name, rows.get(name) or reader.session(name)) for name in dict.fromkeys(names))
    return {name: row for name, row in stored if row is not None}


def _name(path: str) -> str:
    pure = PureWindowsPath(path) if "\\" in path else PurePosixPath(path)
    return pure.name
