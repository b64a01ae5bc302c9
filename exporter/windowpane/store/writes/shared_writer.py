"""The writing connection that the threads of a process share, and the sessions claimed over it.

The connection is opened again after a fork and when it is lost. A claim shows at once that a session that one
process records live has a second owner. It ends with the connection that holds it, so that of a process that was
killed is free. It blocks nothing: a process that finds a session claimed records it all the same.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from windowpane.exceptions import StoreError
from windowpane.store.database import Database, Engine
from windowpane.store.writes.write import Writer

MAXIMUM_CLAIMS: Final = 64
"""Sessions that one process claims; a server has room for so many locks of each connection by default."""


class SharedWriter:
    """Lends one writer to one thread at a time, inside a transaction.

    *on_replaced* is called before another store is opened in the place of one that was deleted or replaced.
    """

    def __init__(
        self, engine: Engine, make_writer: Callable[[Database], Writer], on_replaced: Callable[[], object]
    ) -> None:
        self._engine = engine
        self._make_writer = make_writer
        self._on_replaced = on_replaced
        self._lock = threading.RLock()  # guards the connection and the writer's memory
        self._is_dirty = False
        self._inherited: list[Writer] = []
        self._process = os.getpid()
        self._is_closed = False
        self._writer: Writer | None = self._open()

    @property
    def writer(self) -> Writer | None:
        """The open writer; None while it has to be opened again."""
        return self._writer

    @contextmanager
    def lend(self, *, durable: bool = False) -> Iterator[Writer]:
        """Lend the writer inside a transaction; when that fails, the writer discards what it remembers.

        After a *durable* one everything written so far survives a power cut.
        """
        with self._lock:
            writer = self._current()
            if writer.connection.in_transaction:  # nested: a metric fold admits an agent's label
                yield writer
                return
            try:
                with self._engine.reporting(), self._engine.transaction(writer.connection, durable=durable):
                    writer.start()
                    yield writer
                    writer.connection.execute("UPDATE store SET writes = writes + 1")
            except BaseException:
                writer.reset()
                raise
            self._is_dirty = not durable

    @contextmanager
    def lend_connection(self) -> Iterator[Database]:
        """Lend the connection outside a transaction, which waits for no other process."""
        with self._lock, self._engine.reporting():
            yield self._current().connection

    def sync(self) -> None:
        """Return only when everything written so far survives a power cut."""
        with self._lock:
            if not self._is_dirty and (self._writer is None or self._process != os.getpid()):
                return
            writer = self._current()
            if self._is_dirty:
                with self._engine.reporting():
                    self._engine.sync(writer.connection)
            self._is_dirty = False

    def reclaim(self) -> None:
        """Let the engine release the space of what was deleted."""
        with self._lock, self._engine.reporting():
            self._engine.reclaim(self._current().connection)

    def close(self, close_readers: Callable[[], object]) -> None:
        """Sync and close; *close_readers* is called before: the last connection to close finishes the file."""
        with self._lock:
            if self._is_closed:
                return
            try:
                if self._is_dirty:
                    self.sync()
            finally:
                self._is_closed = True
                close_readers()
                self._close_writer()

    # -- internals --------------------------------------------------------------------------------------------

    def _open(self) -> Writer:
        with self._engine.reporting():
            connection = self._engine.open_writer()
            try:
                return self._make_writer(connection)
            except BaseException:
                connection.close()
                raise

    def _current(self) -> Writer:
        if self._is_closed:
            raise StoreError(f"{self._engine.address}: the store is closed")
        if self._process != os.getpid():  # after a fork: the parent's connection must not even be closed here
            self._inherited += [] if self._writer is None else [self._writer]
            self._writer, self._process = None, os.getpid()
        if self._writer is not None and not self._engine.is_usable(self._writer.connection):
            self._close_writer()
        if self._writer is not None:
            try:
                self._engine.check_writer(self._writer.connection)
            except StoreError:
                self._is_dirty = False
                self._on_replaced()  # no old connection may remain: companion files have the same names
                self._close_writer()
                raise
        if self._writer is None:
            self._writer = self._open()
        return self._writer

    def _close_writer(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None and self._process == os.getpid():
            writer.connection.close()


class SessionClaims:
    """The claims of one process, in the database. Not thread-safe."""

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
