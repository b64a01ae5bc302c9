"""The store: everything that is written to it, over an engine and through one connection of each process.

Safe to share between threads and, through separate connections, between processes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from windowpane.core.codec import decode, encode
from windowpane.core.events import Event
from windowpane.core.protocols import Clock
from windowpane.exceptions import ConfigurationError, EventsRefusedError, StoreError, UnconfirmedWriteError
from windowpane.store import read_files
from windowpane.store.captured_content import Redactor
from windowpane.store.database import Database, Engine
from windowpane.store.keys import AuditKeys, checked_key, load_key, old_keys
from windowpane.store.read_files import ReadFile
from windowpane.store.reads.notes import NoteKind
from windowpane.store.reads.reader import Reader
from windowpane.store.records import Accepted, ImportOutcome, Verification
from windowpane.store.search import content_index
from windowpane.store.search import events as search
from windowpane.store.writes import additions, chain
from windowpane.store.writes.content_capture import ContentCapture
from windowpane.store.writes.shared_writer import SessionClaims, SharedWriter
from windowpane.store.writes.write import Writer

if TYPE_CHECKING:  # loaded by the commands that verify, prune or receive
    from windowpane.core.store_names import StoreName
    from windowpane.store.replays import StoredReplay
    from windowpane.store.writes.received import Receipt, ReceivedBatch
    from windowpane.store.writes.retention import MetricFold, ProjectScope
    from windowpane.store.writes.spool import SpooledEvents


class StoreOptions(TypedDict, total=False):
    """The options of a `Store`, which describes them."""

    capture: bool
    redact: Redactor | None
    audit_key: bytes | None
    old_audit_keys: Sequence[bytes] | None
    clock: Clock


class Store(Reader):
    """A `Reader` that also writes: each write whole or not at all, also while other processes write.

    *capture* stores the texts of blocks, each passed through *redact* first, which it requires. *audit_key* (else
    `WINDOWPANE_AUDIT_KEY` or the file `WINDOWPANE_AUDIT_KEY_FILE` names) makes the chains tamper-evident;
    *old_audit_keys* (else the files of `WINDOWPANE_AUDIT_OLD_KEY_FILES`) verify what was signed before it.

    Safe to share between threads; a forked child opens its own connection at its first write. When the store was
    deleted or replaced, the next write or flush raises `StoreReplacedError`, and the one after it opens the one
    that is there now.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        capture: bool = False,
        redact: Redactor | None = None,
        audit_key: bytes | None = None,
        old_audit_keys: Sequence[bytes] | None = None,
        clock: Clock = time.time,
    ) -> None:
        if capture and redact is None:
            raise ConfigurationError("redact", "content capture needs a redactor", expected="text to text")
        super().__init__(engine)
        self._options = StoreOptions(
            capture=capture,
            redact=redact if capture else None,  # most processes need not load it
            audit_key=audit_key,
            old_audit_keys=old_audit_keys,
            clock=clock,
        )
        self._audit_key = load_key() if audit_key is None else checked_key(audit_key)
        self._old_audit_keys = old_keys(old_audit_keys)
        self._capture = ContentCapture(redact) if capture and redact is not None else None
        self._clock = clock
        self._refuses_events = False
        self._unconfirmed: set[tuple[str, int]] = set()
        self._claims = SessionClaims(engine)
        self._shared = SharedWriter(engine, self._make_writer, engine.close_readers)

    def __reduce__(self) -> tuple[Callable[[StoreName], Store], tuple[StoreName]]:
        """Return how another process opens the store, with separate connections."""
        return partial(type(self), **self._options), (self.address,)

    # -- writing ----------------------------------------------------------------------------------------------

    def append(self, batch: Sequence[Event]) -> None:
        """Store events in order, or none of them. Raises `StoreError`."""
        if not batch:
            return
        try:
            with self._writing() as writer:
                if self._refuses_events:
                    raise StoreError(f"{self.name}: the events are spooled")
                writer.append(self._unstored(writer, batch) if self._unconfirmed else batch)
            self._unconfirmed.clear()
        except UnconfirmedWriteError:
            self._unconfirmed.update((event.context.stream_id, event.n) for event in batch)
            raise
        except UnicodeEncodeError:  # half a surrogate pair in a name: stored as the codec writes it
            self.append([decode(encode(event)) for event in batch])

    def claim_sessions(self, streams: Mapping[str, str]) -> list[str]:
        """Claim sessions that this process records, given with the stream of each; return those of other owners.

        An owner is known while its process lives, however long it is silent. Claims none in a file.
        """
        writer = self._shared.writer
        if not streams and self._claims.are_current(None if writer is None else writer.connection):
            return []
        with self._shared.lend_connection() as connection:
            return self._claims.add(connection, streams)

    def release_sessions(self, session_ids: Iterable[str]) -> None:
        """Release claimed sessions that have ended."""
        for session_id in session_ids:
            with self._shared.lend_connection() as connection:
                self._claims.release(connection, session_id)

    def refuse_events(self, *, refuse: bool = True) -> None:
        """Refuse events from now on, also those of an `append` that waits for a lock; False accepts them again.

        To be called before events are spooled: an append that succeeds after the spool was taken in would store
        them twice. Waits for no lock.
        """
        self._refuses_events = refuse

    def extend_session(self, batch: Sequence[Event], *, events: int) -> bool:
        """Append to a session if it holds exactly *events* events; else store nothing and return False.

        For a follower of a recording that another process may have imported meanwhile.
        """
        with self._writing() as writer:
            session_id = batch[0].context.session_id
            session = writer.session(session_id)
            if (0 if session is None else session.events) != events:
                return False
            writer.append(batch, into=session or writer.start_session(session_id))
        return True

    def import_session(self, events: Callable[[], Iterable[Event]]) -> ImportOutcome:
        """Store a recorded session; *events* makes its whole event sequence.

        The same sequence changes nothing, a longer one appends its new events, one whose past differs starts a
        new revision. *events* is called once, and again only where the past has changed. Raises `StoreError`, and
        then nothing has changed.
        """
        try:
            return self._import(events)
        except UnicodeEncodeError:  # half a surrogate pair in a name: stored as the codec writes it
            return self._import(lambda: (decode(encode(event)) for event in events()))

    def _import(self, events: Callable[[], Iterable[Event]]) -> ImportOutcome:
        from windowpane.store.writes import session_import

        capture = None if self._capture is None else self._capture.empty_copy()
        with self._engine.lend() as connection:
            comparison = session_import.compare(connection, events, capture)
        if comparison.change is session_import.Change.NONE:
            if capture:
                with self._writing() as writer:
                    capture.save(writer.connection)
            return comparison.unchanged()
        with self._writing() as writer:
            if capture is not None and writer.capture is not None:
                writer.capture.absorb(capture)
            return session_import.store(writer, comparison, events)

    def flush(self) -> None:
        """Return only when everything appended so far survives a power cut."""
        self._shared.sync()

    def take_in(self, spooled: SpooledEvents) -> int:
        """Store the events of a spool file that are not stored yet, in order; return how many.

        Each session is stored whole or not at all. Raises `EventsRefusedError` when the store cannot hold a
        session, after the others are stored.
        """
        sessions: dict[str, list[Event]] = {}
        for event in spooled.events:
            sessions.setdefault(event.context.session_id, []).append(event)
        stored, refused = 0, None
        for session_id, batch in sessions.items():
            try:
                with self._writing() as writer:
                    stored += writer.append(writer.missing(session_id, batch))
            except EventsRefusedError as error:
                refused = error
        if self._capture is not None and spooled.texts:
            capture = self._capture.empty_copy()
            capture.add(spooled.texts)
            with self._writing() as writer:
                capture.save(writer.connection)
        self.flush()
        if refused is not None:
            raise refused
        return stored

    def receive(self, batches: Sequence[ReceivedBatch]) -> list[Receipt]:
        """Store what agents on other hosts have sent, as far as it is new; it is durable when this returns.

        Each batch has a receipt, with the events that cannot be stored. Raises `StoreError` when none can be now.
        """
        from windowpane.store.writes import received

        durably = partial(self._shared.lend, durable=True)
        receipts = received.store(durably, batches)
        if self._capture is not None and any(batch.texts for batch in batches):
            capture = self._capture.empty_copy()
            for batch in batches:
                capture.add(batch.texts)
            with durably() as writer:
                capture.save(writer.connection)
        return receipts

    @property
    def captures(self) -> bool:
        """Texts are stored."""
        return self._capture is not None

    def read_file(self, path: str) -> ReadFile | None:
        """Return a file that was imported, as it is remembered."""
        with self._engine.lend() as connection:
            return read_files.load(connection, path)

    def remember_file(self, path: str, read: ReadFile) -> None:
        """Remember a file that was imported."""
        with self._writing() as writer:
            read_files.save(writer.connection, path, read)

    # -- audit and retention ----------------------------------------------------------------------------------

    @property
    def audit_keys(self) -> AuditKeys:
        """The keys that sign and verify the chains."""
        return AuditKeys(self._audit_key, self._old_audit_keys)

    def verify(
        self,
        session_id: str | None = None,
        *,
        heads_file: str | Path | None = None,
        projections: bool = True,
        expect_key: bool | None = None,
    ) -> Verification:
        """Recompute the audit chain of one session or all, and compare it with exported heads if given.

        *projections* folds the events again, too, and compares the result with the rows that pages read.
        *expect_key* reports what was neither signed nor accepted, as in any store that has a signature; None does
        so where this process has a key.
        """
        from windowpane.store.audit import heads as audit_heads
        from windowpane.store.audit import verification as audit

        exported = None if heads_file is None else audit_heads.read_file(Path(heads_file))
        with self._engine.lend() as connection:
            return audit.verify(
                connection,
                keys=self.audit_keys,
                session_id=session_id,
                exported=exported,
                projections=projections,
                expect_key=expect_key,
            )

    def heads(self) -> list[chain.Head]:
        """Return the store-wide chain, brought up to date first; `audit heads` prints it."""
        with self._writing() as writer:
            chain.add_grown_heads(writer.connection, key=self._audit_key, at=self._clock())
            return chain.read_heads(writer.connection)

    def export_heads(self, file: str | Path) -> int:
        """Write the store-wide chain as JSON Lines, to keep outside the store; return the number of entries."""
        from windowpane.store.audit import heads as audit_heads

        return audit_heads.write_file(self.heads(), Path(file))

    def accept_unkeyed(self) -> Accepted:
        """Sign for every chain recorded without a key, as it is now. Raises `ConfigurationError` without a key.

        This is the owner's decision, for example that the key is new, or that an agent which ran without it was
        one's own. The store-wide chain records it.
        """
        if self._audit_key is None:
            raise ConfigurationError("audit_key", "is not set", expected="the key to sign with")
        with self._writing() as writer:
            return chain.accept_unkeyed(writer.connection, key=self._audit_key, at=self._clock())

    def prune(
        self,
        *,
        before: float | None = None,
        max_bytes: int | None = None,
        fold: MetricFold | None = None,
        scope: ProjectScope | None = None,
    ) -> int:
        """Delete whole sessions, oldest first, keeping a tombstone of each; return how many.

        *before* deletes sessions whose last event is older, *max_bytes* the oldest until the store is that small.
        *fold* adds a session's events to the stored metric base in the same transaction, so no counter falls.
        *scope* limits it to the sessions of a project.
        """
        from windowpane.store.writes import retention

        pruned, scope = 0, scope or retention.WHOLE_STORE
        while True:
            with self._writing() as writer:
                deleted = retention.prune_oldest(
                    writer, self._engine, before=before, max_bytes=max_bytes, fold=fold, scope=scope
                )
            if not deleted:
                break
            pruned += deleted
        if pruned:
            self._shared.reclaim()
        return pruned

    # -- notes ------------------------------------------------------------------------------------------------

    def add_note(self, session_id: str, turn: int, text: str, *, kind: NoteKind = "note") -> str:
        """Add a note or bookmark to a turn as an event of the session, redacted; return its id.

        Raises `StoreError` where the session's chain must not be continued by this process.
        """
        with self._writing() as writer:
            return additions.add_note(writer, session_id, turn, text, kind)

    def delete_note(self, session_id: str, note_id: str) -> None:
        """Delete a note with a further event; both stay in the record. Raises `StoreError` if unknown."""
        with self._writing() as writer:
            additions.delete_note(writer, session_id, note_id)

    def give_title(self, session_id: str, title: str) -> None:
        """Give a session a title that replaces the recording's, as an event of the session."""
        with self._writing() as writer:
            additions.give_title(writer, session_id, title)

    def assign_project(self, session_id: str, project: str) -> None:
        """Move a session to a project, as an event of the session. Raises `StoreError` for an unknown session."""
        with self._writing() as writer:
            additions.assign_project(writer, session_id, project)

    # -- upkeep -----------------------------------------------------------------------------------------------

    def rebuild_projections(self) -> int:
        """Fold every current session's events again into sessions, turns, blocks and alerts; return how many.

        Captured texts are indexed again as well, by the next calls of `index_text`.
        """
        from windowpane.store.projections import rebuild as projection_rebuild
        from windowpane.store.writes import session_import

        with self._writing() as writer:
            content_index.start_again(writer.connection)
            sessions = projection_rebuild.rebuild(writer.connection)
            session_import.correct_counted_from(writer.connection)
            writer.reset()  # it remembers the rows as they were
        return sessions

    def index_text(self, *, limit: int = search.INDEX_BATCH) -> int:
        """Index the next events and captured texts for search; return how many, 0 when all are indexed."""
        with self._engine.lend() as connection:
            if not search.is_behind(connection) and not content_index.is_behind(connection):
                return 0
        with self._writing() as writer:
            events = search.index(writer.connection, limit=limit)
            return events + content_index.index(writer.connection, limit=min(limit, content_index.INDEX_BATCH))

    def record_quotas(self, rows: Iterable[Sequence[object]]) -> None:
        """Record rows of the used quota of plans that a status line was given, as `quotas.row` returns them."""
        from windowpane.store import quotas

        with self._writing() as writer:
            writer.connection.executemany(quotas.RECORD, rows)

    def save_replay(self, replay: StoredReplay) -> None:
        """Store the result of a policy replay, replacing the same one stored before."""
        from windowpane.store import replays

        with self._writing() as writer:
            replays.save(writer.connection, replay)

    def admit_agent(self, name: str) -> str:
        """Return the metric label of an agent: its name for the first 50 of this store, else `other`."""
        from windowpane.store import registry

        label = registry.label_of(name)
        with self._engine.lend() as connection:
            admitted = registry.known_agent(connection, label)
        if admitted is None:
            with self._writing() as writer:
                admitted = registry.admit_agent(writer.connection, label)
        return admitted

    def register_endpoint(
        self, host: str, port: int, *, pid: int, started_at: float, scheme: str = "http", machine: str = ""
    ) -> None:
        """Record a running `/metrics` endpoint for service discovery."""
        from windowpane.store import registry

        endpoint = registry.Endpoint(host, port, pid, started_at, scheme, machine)
        with self._writing() as writer:
            registry.register_endpoint(writer.connection, endpoint)

    def unregister_endpoint(self, host: str, port: int, *, machine: str = "") -> None:
        """Remove an endpoint that has stopped."""
        from windowpane.store import registry

        with self._writing() as writer:
            registry.unregister_endpoint(writer.connection, host, port, machine)

    def close(self) -> None:
        """Flush and close every connection; a closed store can no longer be used."""
        self._shared.close(super().close)

    # -- internals -----------------------------------------------------------------------------------------------

    def _make_writer(self, connection: Database) -> Writer:
        return Writer(connection, audit_key=self._audit_key, capture=self._capture, clock=self._clock)

    def _writing(self) -> AbstractContextManager[Writer]:
        return self._shared.lend()

    def _unstored(self, writer: Writer, batch: Sequence[Event]) -> Sequence[Event]:
        """Return the events without those of an earlier batch that was committed when the connection broke."""
        if not any((event.context.stream_id, event.n) in self._unconfirmed for event in batch):
            return batch
        missing: list[Event] = []
        for session_id, events in groupby(batch, key=lambda event: event.context.session_id):
            missing += writer.missing(session_id, list(events))
        return missing
