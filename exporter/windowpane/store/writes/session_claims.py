"""The sessions that a process records live, claimed in the database: a second owner is recognized at once.

A claim ends with the connection that holds it, so that of a process that was killed is free. It blocks nothing:
a process that finds a session claimed records it all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from windowpane.store.database import Database, Engine

MAXIMUM_CLAIMS: Final = 64
"""Sessions that one process claims; a server has room for so many locks of each connection by default."""


class SessionClaims:
    """The claims of one process. Not thread-safe."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._connection: Database | None = None
        self._streams: dict[str, str] = {}

    def are_current(self, connection: Database | None) -> bool:
        """Return whether every claim is held by this connection."""
        return not self._streams or connection is self._connection

    def add(self, connection: Database, streams: Mapping[str, str]) -> list[str]:
        """Claim sessions, given with the stream that records each; return those that have another owner.

        Over another connection than before the earlier claims are made again.
        """
        shared = [one for one, stream in streams.items() if self._streams.get(one, stream) != stream]
        wanted = {one: stream for one, stream in streams.items() if one not in self._streams}
        if connection is not self._connection:
            wanted = {**self._streams, **wanted}
            self._connection, self._streams = connection, {}
        for session_id, stream in wanted.items():
            if len(self._streams) >= MAXIMUM_CLAIMS:
                break
            if self._engine.claim_session(connection, session_id):
                self._streams[session_id] = stream
            else:
                shared.append(session_id)
        return shared

    def release(self, connection: Database, session_id: str) -> None:
        """Release a session that has ended."""
        if self._streams.pop(session_id, None) is not None and connection is self._connection:
            self._engine.release_session(connection, session_id)
