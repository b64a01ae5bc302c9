"""The sessions that the token of a project writes to: a session id is unique within its project.

A session that arrives with a project's token is stored as `ID@PROJECT`, so no project can take or change the id
of another one. Its parent and its sub-agents are sessions of the same project. Sessions that a project has under
their plain ids, which others have assigned to it, continue under these.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from windowpane.core.events import (
    CallsCopied,
    Event,
    EventContext,
    Payload,
    SessionDescribed,
    SessionIdentified,
    SubagentDelegated,
    SubagentReturned,
)
from windowpane.exceptions import EventFormatError
from windowpane.store.writes import additions
from windowpane.store.writes.write import Writer

if TYPE_CHECKING:
    from windowpane.store.reads.project_reader import EventReader
    from windowpane.store.records import SessionRow

SEPARATOR: Final = "@"
"""Between an id and its project, whose name never contains it."""


def qualified(session_id: str, project: str) -> str:
    """Return the id under which a session of *project* is stored."""
    return f"{session_id}{SEPARATOR}{project}"


def named_in_projects(store: EventReader, session_id: str) -> list[SessionRow]:
    """Return the sessions that agents with a project's token call *session_id*, as far as *store* shows them."""
    rows = store.find_sessions(f"{session_id}{SEPARATOR}")
    return [row for row in rows if row.session_id == qualified(session_id, row.project)]


class ProjectSessions:
    """The sessions of one transaction, by the projects of the tokens that send them."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._ids: dict[tuple[str, str], str] = {}
        self._written: dict[str, str] = {}
        """The project of each session that is written to."""
        self._contexts: dict[tuple[EventContext, str], EventContext] = {}

    def owned(self, event: Event, project: str) -> Event:
        """Return the event with the ids of its project. Raises `EventFormatError` if it names another one."""
        data = event.data
        if isinstance(data, SessionDescribed) and data.project not in ("", project):
            raise EventFormatError(
                f"data.project: expected {project!r}, the project of the token, got {data.project!r}"
            )
        context = self._contexts.get((event.context, project))
        if context is None:
            context = self._contexts[event.context, project] = self._context(event.context, project)
        if self._written[context.session_id] != project:
            raise EventFormatError("session_id: the session was moved to another project than the token's")
        return Event(context, event.n, event.at, self._data(data, project))

    def assign(self) -> None:
        """Assign the sessions that were written to to their projects."""
        for session_id, project in self._written.items():
            session = self._writer.session(session_id)
            if session is not None and not session.project:
                additions.assign_project_to(self._writer, session, project)

    def _context(self, context: EventContext, project: str) -> EventContext:
        session_id, parent_id = self._id(context.session_id, project), context.parent_session_id
        session = self._writer.session(session_id)
        self._written[session_id] = project if session is None else session.project or project
        return replace(
            context, session_id=session_id, parent_session_id=parent_id and self._id(parent_id, project)
        )

    def _data(self, data: Payload, project: str) -> Payload:
        if isinstance(data, SubagentDelegated | SubagentReturned):
            return replace(data, child_session_id=self._id(data.child_session_id, project))
        if isinstance(data, SessionIdentified):
            return replace(data, same_as=self._id(data.same_as, project))
        if isinstance(data, CallsCopied):
            return replace(data, of=self._id(data.of, project))
        return data

    def _id(self, session_id: str, project: str) -> str:
        """Return the stored id of a session of *project*."""
        stored = self._ids.get((session_id, project))
        if stored is None:
            stored = qualified(session_id, project)
            if self._writer.session(stored) is None:
                plain = self._writer.session(session_id)
                if plain is not None and plain.project == project:
                    stored = session_id
            self._ids[session_id, project] = stored
        return stored
