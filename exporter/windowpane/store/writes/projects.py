"""The project of a session: stated by its agent, or assigned to it afterwards.

An assignment is a `session.described` of a separate stream, as notes are, so that it never takes a number of the
agent's stream and an import of the same recording skips it. The latest statement applies; a new revision of a
session gets the assignment of the one before.
"""

from __future__ import annotations

import secrets

from windowpane.core.events import SessionDescribed
from windowpane.core.names import check_project
from windowpane.store.projections.session_drafts import SessionDraft
from windowpane.store.reads.projects import ASSIGNED
from windowpane.store.writes.notes import append_beside, writable_session
from windowpane.store.writes.write import Writer


def assign(writer: Writer, session_id: str, project: str) -> None:
    """Assign a session to *project*, inside the caller's transaction; nothing changes if it belongs to it.

    Raises `ConfigurationError` for an invalid name and `StoreError` where the session is unknown or has a chain
    that this process may not continue.
    """
    check_project("project", project)
    session = writable_session(writer, session_id)
    if session.project != project:
        assign_to(writer, session, project)


def assign_to(writer: Writer, session: SessionDraft, project: str) -> None:
    """Assign an open session to *project*; it does not become more recent by that."""
    stream = f"{ASSIGNED}{secrets.token_hex(8)}"
    append_beside(
        writer, session, session.last_turn, stream, SessionDescribed(project=project), at=session.last_at
    )
