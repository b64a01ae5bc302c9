"""A process that reads and plays files, and stores each when its turn comes; see `workers`.

It imports nothing from the folder in which it is started.
"""

from __future__ import annotations

import logging
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from windowpane.alerts.engine import AlertEngine
from windowpane.core.agents import EarlierSessions, EvidentWindow, SessionEvidence
from windowpane.core.events import (
    ANNOTATIONS,
    BlockAdded,
    Event,
    LimitChanged,
    PressureMeasured,
    SessionDescribed,
    SessionStarted,
    TurnEnded,
)
from windowpane.core.vocabulary import EVIDENT_SOURCES, LimitSource
from windowpane.effects.processes import rare_collection
from windowpane.exceptions import StoreError
from windowpane.sources.imports.file_report import FileReport
from windowpane.sources.imports.importer import RecordedEvents, problem_of, read_file
from windowpane.sources.imports.pipeline import playback_settings
from windowpane.sources.imports.remembered_files import RememberedFiles
from windowpane.sources.transcripts.discovery import all_readers
from windowpane.store.records import ImportOutcome

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from pathlib import Path

    from windowpane.alerts.rules import Rule
    from windowpane.core.limits import Thresholds, TrackerSettings
    from windowpane.sources.transcripts.playback_settings import PlaybackSettings
    from windowpane.store.read_files import FileState
    from windowpane.store.store import Store

_log: Final = logging.getLogger(__name__)

HELD_EVENTS: Final = 20_000
HELD_CHARACTERS: Final = 32_000_000
"""Events of a file, and their texts, that are held at most until its turn."""


class WorkerSetup(NamedTuple):
    """All that a worker needs to play and store files as one process would."""

    store: Store
    """Sent as a copy with separate connections."""
    limit_tokens: int | None
    agent: str | None
    model: str
    with_fidelity: bool
    first_message_titles: bool
    project: str
    settings: TrackerSettings | None
    thresholds: Thresholds | None
    rules: Sequence[Rule] | None

    @classmethod
    def of(cls, store: Store, playback: PlaybackSettings, rules: Sequence[Rule] | None) -> WorkerSetup:
        """Return the setup of a worker that plays as *playback* does."""
        return cls(
            store, playback.limit_tokens, playback.agent, playback.model, playback.evaluate is not None,
            playback.first_message_titles, playback.project, playback.settings, playback.thresholds, rules,
        )  # fmt: skip

    def playback(self, record: _Record) -> PlaybackSettings:
        """Return the settings, with a record of earlier sessions."""
        playback = playback_settings(
            self.store.digester(),
            limit_tokens=self.limit_tokens,
            agent=self.agent,
            model=self.model,
            with_fidelity=self.with_fidelity,
            history=record.earlier_sessions,
            stored_projects=record.stored_project,
        )
        return replace(
            playback,
            settings=self.settings,
            thresholds=self.thresholds,
            first_message_titles=self.first_message_titles,
            project=self.project,
        )


class ToRead(NamedTuple):
    """An order: read a file."""

    path: Path
    state: FileState | None
    """Its state before; None where it is not remembered."""


class Turn(NamedTuple):
    """An order: everything before the first file that the worker has played is stored, and it stores that one."""


class Ready(NamedTuple):
    """The worker takes orders: it has started, or has played a file."""


class EvidenceWanted(NamedTuple):
    """The worker waits for the evidence of sessions that are not stored yet, for one of this agent and model."""

    agent: str
    model: str
    project: str
    knows_level: bool
    """The level at which the agent compacts is known from stored sessions: it is seldom another one."""
    compacts: bool
    """Its file holds a compaction, and so evidence for later sessions."""


class TurnWanted(NamedTuple):
    """The worker waits for the turn of the file that it plays, which is too large to be held."""


Order = ToRead | Turn
Message = Ready | EvidenceWanted | SessionEvidence | TurnWanted | FileReport


def work(connection: Connection, setup: WorkerSetup) -> None:
    """Follow the orders that arrive, until the other process closes the connection or has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the other process stops its workers
    with rare_collection(), closing(setup.store), suppress(EOFError, ConnectionError):
        worker = _Worker(connection, setup)
        connection.send(Ready())
        while True:
            match connection.recv():
                case ToRead(path, state):
                    worker.read(path, state)
                    connection.send(Ready())
                case Turn():
                    worker.store_next()


class _Worker:
    """Plays files in the order in which they arrive, and stores them in this order."""

    def __init__(self, connection: Connection, setup: WorkerSetup) -> None:
        self.record = _Record(connection, setup.store)
        self.store = setup.store
        self.rules = setup.rules
        self._connection = connection
        self._playback = setup.playback(self.record)
        self._readers = all_readers()
        self._memory = RememberedFiles(setup.store, self._playback, rules=setup.rules)
        self._played: deque[_File] = deque()

    def read(self, path: Path, state: FileState | None) -> None:
        """Read a file, play its sessions and hold them."""
        file = _File(self, state, FileReport(path))
        read_file(file.report, file, self._playback, self._readers)
        self.record.is_due = False
        self._played.append(file)

    def store_next(self) -> None:
        """Store the first file that is played, and report it."""
        file, self.record.is_due = self._played.popleft(), True
        report = file.stored()
        if file.state is not None and not report.partly:
            self._memory.remember(report.path, file.state, report)
        self.record.is_due = False
        self._connection.send(report)

    def take_turn(self) -> None:
        """Wait until everything before the file that is played now is stored."""
        _answer(self._connection, TurnWanted())
        while self._played:
            self.store_next()
            _receive(self._connection)
        self.record.is_due = True

    def announce(self, evidence: SessionEvidence) -> None:
        """Send what later sessions may learn."""
        self._connection.send(evidence)


class _Question(NamedTuple):
    """A question about the store on which the events of a session depend."""

    again: Callable[[], object]
    answer: object


class _Record:
    """The store's record of earlier sessions, with those that are played and not stored yet."""

    def __init__(self, connection: Connection, store: Store) -> None:
        self._connection = connection
        self._store = store
        self.is_due = False
        """Everything before is stored."""
        self.compacts = False
        """The file that is played holds a compaction."""
        self.questions: list[_Question] = []

    def earlier_sessions(
        self, session_id: str, *, agent: str, model: str, started_at: float | None, project: str, folder: str
    ) -> EarlierSessions:
        """Return what is evidence for a session now: earlier ones that are still played may add to it."""

        def stored(pending: Sequence[SessionEvidence] = ()) -> EarlierSessions:
            return self._store.earlier_sessions(
                session_id, agent=agent, model=model, started_at=started_at, project=project, folder=folder,
                pending=pending,
            )  # fmt: skip

        answer = stored()
        if not self.is_due:
            knows_level = answer.compaction_tokens is not None
            wanted = EvidenceWanted(agent, model, project, knows_level, self.compacts)
            answer = stored(_answer(self._connection, wanted))
        self.questions.append(_Question(stored, answer))
        return answer

    def stored_project(self, session_id: str) -> str | None:
        """Return the project of a stored session."""

        def stored() -> str | None:
            return self._store.stored_project(session_id)

        answer = stored()
        self.questions.append(_Question(stored, answer))
        return answer


def _answer(connection: Connection, wanted: EvidenceWanted | TurnWanted) -> Any:
    connection.send(wanted)
    return _receive(connection)


def _receive(connection: Connection) -> Any:
    try:
        return connection.recv()
    except EOFError as error:
        raise ConnectionError("the other process has ended") from error


@dataclass(slots=True)
class _Session:
    """A session that is played."""

    session_id: str
    played: Iterable[Event]
    play: RecordedEvents
    """Plays it again."""
    questions: Sequence[_Question]

    def is_current(self) -> bool:
        """Return whether the store would answer now as the session was played."""
        return all(one.again() == one.answer for one in self.questions)


@dataclass(eq=False, slots=True)
class _File:
    """A file that is read, as the store of the importer: its sessions are held until its turn."""

    worker: _Worker
    state: FileState | None
    report: FileReport
    held: deque[_Session] = field(default_factory=deque)
    outcomes: list[ImportOutcome] = field(default_factory=list)
    error: str = ""
    characters: int = 0
    events: int = 0

    def import_session(self, events: Callable[[], Iterable[Event]]) -> ImportOutcome:
        """Play a session and hold it; a too large one, and those after it, are stored in the file's turn."""
        assert isinstance(events, RecordedEvents), "made by the importer"
        worker = self.worker
        worker.record.compacts = self.report.stats.compactions > 0
        questions = worker.record.questions = list[_Question]()
        playing, held = self._playing(events), list[Event]()
        for event in playing:
            held.append(event)
            self._count(event)
            if self.events > HELD_EVENTS or self.characters > HELD_CHARACTERS:
                if not worker.record.is_due:
                    worker.take_turn()
                    self._store_held()
                self._store(_Session(event.context.session_id, chain(held, playing), events, questions))
                break
        else:
            session_id = held[0].context.session_id if held else ""
            self.held.append(_Session(session_id, held, events, questions))
        return ImportOutcome("", 0, 0, 0, revised=False)  # until it is stored

    def stored(self) -> FileReport:
        """Store what is held, and return the report."""
        self._store_held()
        self.report.outcomes = self.outcomes
        self.report.error = self.report.error or self.error
        return self.report

    def _store_held(self) -> None:
        while self.held:
            self._store(self.held.popleft())

    def _store(self, session: _Session) -> None:
        try:
            first = [session.played] if session.is_current() else []
            self.worker.record.questions = []  # of what is played now: it is stored at once

            def play() -> Iterable[Event]:
                return first.pop() if first else self._playing(session.play)

            self.outcomes.append(session.play.store_with(partial(self.worker.store.import_session, play)))
        except StoreError as error:
            self.error = self.error or f"session {session.session_id}: {error}"
        except ConnectionError:
            raise
        except Exception as error:  # noqa: BLE001  # an internal error stops no other session
            _log.exception("importing session %s failed", session.session_id)
            self.error = self.error or problem_of(error)

    def _playing(self, events: Callable[[], Iterable[Event]]) -> Iterator[Event]:
        """Yield the events of a session with its alerts, and send its evidence as soon as it can count."""
        evidence, sent = _EvidenceFold(), (False, False)
        for event in AlertEngine(self.worker.rules).interleave(events()):
            counts = (event.context.turn > 1, evidence.compaction_tokens is not None)
            if counts != sent and evidence.last is not None:
                sent = counts
                self.worker.announce(evidence.result())
            evidence.add(event)
            yield event
        if evidence.last is not None:
            self.worker.announce(evidence.result())

    def _count(self, event: Event) -> None:
        self.events += 1
        if isinstance(event.data, BlockAdded) and event.data.block.text:
            self.characters += len(event.data.block.text)


class _EvidenceFold:
    """The evidence of one session, from its events as the store's rows have it."""

    def __init__(self) -> None:
        self.last: Event | None = None
        self._model = self._project = self._folder = self._version = ""
        self._last_at: float | None = None
        self._first_call_at: float | None = None
        self._base: int | None = None
        self._is_reported = False
        self.compaction_tokens: int | None = None
        self._limit: tuple[int | None, LimitSource | None] = (None, None)

    def add(self, event: Event) -> None:
        """Add the next event."""
        self.last = event
        context, _n, at, data = event
        self._model = context.model or self._model
        if at is not None and (self._last_at is None or at > self._last_at) and data.type not in ANNOTATIONS:
            self._last_at = at
        if context.turn == 1 and self._first_call_at is None:
            self._first_call_at = at
        if isinstance(data, SessionStarted | LimitChanged | PressureMeasured):
            self._limit = data.limit_tokens, data.limit_source
        if isinstance(data, PressureMeasured):
            self.compaction_tokens = data.compaction_tokens if data.compaction_evidence == "recorded" else None
            if context.turn == 1 and data.phase != "next":
                self._base = data.used_by_component.get("unattributed", 0)
        elif isinstance(data, TurnEnded):
            self._is_reported |= context.turn == 1 and data.usage is not None
        elif isinstance(data, SessionDescribed):
            self._project = data.project or self._project
            self._folder = data.folder or self._folder
            self._version = data.agent_version or self._version

    def result(self) -> SessionEvidence:
        """Return the evidence of the events so far."""
        assert self.last is not None
        context = self.last.context
        return SessionEvidence(
            context.session_id, context.agent, self._model, self._project, self._last_at, self._first_call_at,
            self._base if self._is_reported else None, self.compaction_tokens, self._folder, self._window(),
        )  # fmt: skip

    def _window(self) -> EvidentWindow | None:
        tokens, source = self._limit
        return EvidentWindow(tokens, version=self._version) if tokens and source in EVIDENT_SOURCES else None
