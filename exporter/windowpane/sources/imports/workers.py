"""Files read and played by several processes, and stored by this one in their order.

What is stored does not depend on the number of processes. A session may learn from those that took place before
it. So a worker asks for their evidence before it plays one, and is answered when every earlier file is played:
from the store, and from the evidence of sessions that are played and not yet stored. Before a session is stored,
the answer is compared with what the store holds then; where they differ, the session is played again here.

A worker that dies costs its file, which is reported and read again by the next import.
"""

from __future__ import annotations

import logging
import multiprocessing
import pickle
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Final, NamedTuple

from windowpane.core.agents import NO_EARLIER_SESSIONS, EarlierSessions, SessionEvidence
from windowpane.effects.processes import usable_cores, without_current_folder, worker_class
from windowpane.exceptions import StoreError
from windowpane.sources.imports.file_report import FileReport
from windowpane.sources.imports.importer import import_file, problem_of
from windowpane.sources.imports.pipeline import AlertingStore
from windowpane.sources.imports.worker import (
    Batch,
    FilePlayed,
    FileRead,
    ProjectQuestion,
    Question,
    Ready,
    SessionEnd,
    SessionSent,
    WorkerSetup,
    work,
)
from windowpane.sources.transcripts.discovery import all_readers
from windowpane.store.records import ImportOutcome

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess
    from pathlib import Path
    from types import TracebackType

    from windowpane.alerts.rules import Rule
    from windowpane.core.events import Event
    from windowpane.sources.imports.worker import Message
    from windowpane.sources.transcripts.playback_settings import PlaybackSettings
    from windowpane.store.store import Store

_log: Final = logging.getLogger(__name__)

MAXIMUM_WORKERS: Final = 8
MINIMUM_BYTES: Final = 16 * 2**20
"""Below so much to read, workers take longer to start than they save."""
BUFFERED_BYTES: Final = 64 * 2**20
"""Events of later files that are held; beyond them their workers wait."""
FILES_AHEAD: Final = 64
_LOADED: Final = "windowpane.sources.imports.loaded_worker"
END_SECONDS: Final = 5.0


class _Died(NamedTuple):
    """The worker ended before the file."""

    exit_code: int | None


class _Broken(Exception):  # noqa: N818  # carries the reason to the report
    """The events of a session end before the session does."""


@dataclass(eq=False, slots=True)
class _File:
    """A file that a worker reads, and what arrived of it."""

    path: Path
    position: int
    messages: deque[Message | _Died] = field(default_factory=deque)
    is_played: bool = False
    evidence: list[SessionEvidence] = field(default_factory=list)
    """Of its sessions that are not stored yet."""
    answers: dict[str, tuple[Question, EarlierSessions]] = field(default_factory=dict)
    projects: dict[str, str | None] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class _Worker:
    """One process, and the file that it reads."""

    process: BaseProcess
    connection: Connection
    is_ready: bool = False
    file: _File | None = None
    question: Question | None = None
    """A question that waits until the earlier files are played."""


def load_workers() -> Callable[..., BaseProcess]:
    """Load what workers need, in a process beside this one where that is possible; return the workers' class."""
    return worker_class(_LOADED)


def worthwhile(paths: Iterable[Path]) -> int:
    """Return how many workers to read these files with: none, where they would take longer to start."""
    size = 0
    for path in paths:
        with suppress(OSError):
            size += path.stat().st_size
        if size >= MINIMUM_BYTES:
            cores = usable_cores()
            return min(cores, MAXIMUM_WORKERS) if cores > 1 else 0
    return 0


class ReadingWorkers:
    """The worker processes of one import; their events are stored on the thread that calls `import_file`.

    A second thread receives. Entered, they may be started; left, they have ended.
    """

    def __init__(
        self,
        store: Store,
        *,
        playback: PlaybackSettings,
        rules: Sequence[Rule] | None = None,
        processes: int | None = None,
    ) -> None:
        """Read with *processes* workers; None for one per processor, if there is enough to read."""
        self._store = store
        self._playback = playback
        self._rules = rules
        self._processes = processes
        self._files: list[_File] = []
        self._by_path: dict[Path, _File] = {}
        self._workers: list[_Worker] = []
        self._changed = threading.Condition()
        """Guards what follows, and the state of files and workers."""
        self._next = self._played = self._stored = 0
        """Numbers of files given out, played without a gap, and stored."""
        self._buffered = 0
        self._is_closing = False
        self._thread: threading.Thread | None = None
        self._wakes, self._wake = multiprocessing.Pipe(duplex=False)

    def __enter__(self) -> ReadingWorkers:
        """Return itself."""
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """End the processes."""
        with self._changed:
            self._is_closing = True
            self._wake_receiver()
        if self._thread is not None:
            self._thread.join()
        for worker in self._workers:
            worker.connection.close()
            worker.process.terminate()
        for worker in self._workers:
            worker.process.join(END_SECONDS)
        self._wakes.close()
        self._wake.close()

    # -- the storing thread -----------------------------------------------------------------------------------

    def start(self, paths: Sequence[Path]) -> Sequence[Path]:
        """Start to read further files in this order; return those that will be: none if it is not worth it."""
        if self._thread is None:
            count = min(len(paths), self._processes or worthwhile(paths))
            if count < 1:
                return ()
            self._workers = [self._started() for _ in range(count)]
            self._thread = threading.Thread(target=self._receive, name="windowpane-import", daemon=True)
            self._thread.start()
        with self._changed:
            added = [_File(path, len(self._files) + number) for number, path in enumerate(paths)]
            self._files += added
            self._by_path |= {file.path: file for file in added}
            self._wake_receiver()
        return paths

    def import_file(self, path: Path) -> FileReport | None:
        """Store the sessions of the next file, and return its report; None where no worker can read it."""
        file = self._by_path[path]
        report: FileReport | None = None
        outcomes: list[ImportOutcome] = []
        errors: list[str] = []
        while report is None:
            match self._message(file):
                case SessionSent() as session:
                    self._import_session(file, session, outcomes, errors)
                case FileRead() as read:
                    report = read.report
                case _Died(exit_code):
                    report = FileReport(path, error=f"the process that read it ended ({exit_code})")
                case None:
                    self._finish(file)
                    return None
        self._finish(file)
        report.outcomes = outcomes
        report.error = report.error or next(iter(errors), "")
        return report

    def _import_session(
        self, file: _File, session: SessionSent, outcomes: list[ImportOutcome], errors: list[str]
    ) -> None:
        number = len(outcomes) + len(errors)
        sent, calls = self._events(file), 0

        def events() -> Iterable[Event]:
            nonlocal calls
            calls += 1
            return sent if calls == 1 and is_current else self._played_here(file, number)

        try:
            is_current = self._is_current(file, session.session_id)
            outcomes.append(self._store.import_session(events))
        except StoreError as error:
            errors.append(f"session {session.session_id}: {error}")
        except _Broken as error:
            errors.append(str(error))
        except Exception as error:  # noqa: BLE001  # an internal error stops no other session
            _log.exception("importing %s failed", file.path)
            errors.append(problem_of(error))
        finally:
            with suppress(_Broken):
                deque(sent, maxlen=0)
        with self._changed:
            file.evidence = [one for one in file.evidence if one.session_id != session.session_id]

    def _events(self, file: _File) -> Iterator[Event]:
        """Yield the events of the session that was announced last."""
        while True:
            match self._message(file):
                case Batch(pickled):
                    yield from pickle.loads(pickled)  # noqa: S301  # of a process that this one started
                case SessionEnd(error):
                    if error:
                        raise _Broken(error)
                    return
                case _Died() as died:
                    with self._changed:
                        file.messages.appendleft(died)
                    raise _Broken(f"the process that read it ended ({died.exit_code})")

    def _is_current(self, file: _File, session_id: str) -> bool:
        """Return whether the store would answer now as the worker was answered."""
        project = file.projects.get(session_id)
        if session_id in file.projects and self._store.stored_project(session_id) != project:
            return False
        if session_id not in file.answers:
            return True
        question, answer = file.answers[session_id]
        return self._store.earlier_sessions(**question._asdict()) == answer

    def _played_here(self, file: _File, number: int) -> Iterable[Event]:
        """Return the events of a session of a file, by its number in it, as this process plays them."""
        played = _OneSession(number)
        import_file(
            file.path, AlertingStore(played, rules=self._rules), playback=self._playback, readers=all_readers()
        )
        if played.events is None:
            raise _Broken("it changed while it was imported")
        return played.events()

    def _message(self, file: _File) -> Message | _Died | None:
        """Wait for the next message of a file; None where no worker can read it."""
        with self._changed:
            while not file.messages:
                if not any(worker.file is file for worker in self._workers) and not self._is_expected(file):
                    return None
                self._changed.wait()
            message = file.messages.popleft()
            if isinstance(message, Batch):
                was_full = self._buffered > BUFFERED_BYTES
                self._buffered -= len(message.events)
                if was_full:
                    self._wake_receiver()
            return message

    def _is_expected(self, file: _File) -> bool:
        return bool(self._workers) and file.position >= self._next

    def _finish(self, file: _File) -> None:
        with self._changed:
            file.is_played, self._stored = True, file.position + 1
            file.messages.clear()
            file.evidence.clear()
            file.answers.clear()
            self._next = max(self._next, self._stored)
            self._wake_receiver()

    def _wake_receiver(self) -> None:
        if self._thread is not None:
            self._wake.send_bytes(b"!")

    def _started(self) -> _Worker:
        start = load_workers()
        setup = WorkerSetup.of(
            self._playback, self._store.digest_key(), self._rules, captures=self._store.captures
        )
        own, its = multiprocessing.Pipe()
        process = start(target=work, args=(its, setup), name="windowpane-import", daemon=True)
        with without_current_folder():
            process.start()
        its.close()
        return _Worker(process, own)

    # -- the receiving thread ---------------------------------------------------------------------------------

    def _receive(self) -> None:
        """Receive until the workers end."""
        while True:
            with self._changed:
                if self._is_closing:
                    return
                self._give_out()
                self._answer()
                connections = {worker.connection: worker for worker in self._workers if self._is_read(worker)}
            for ready in wait([*connections, self._wakes]):
                if ready is self._wakes:
                    self._wakes.recv_bytes()
                else:
                    self._receive_from(connections[ready])  # type: ignore[index]

    def _is_read(self, worker: _Worker) -> bool:
        """Return whether the worker's messages are received: of later files only within the buffer."""
        file = worker.file
        return file is None or self._buffered <= BUFFERED_BYTES or file.position <= self._stored

    def _receive_from(self, worker: _Worker) -> None:
        try:
            message: Message = worker.connection.recv()
        except (EOFError, OSError):
            self._bury(worker)
            return
        with self._changed:
            file = worker.file
            match message:
                case Ready():
                    worker.is_ready = True
                case Question():
                    worker.question = message
                case ProjectQuestion(session_id) if file is not None:
                    project = file.projects[session_id] = self._stored_project(session_id)
                    self._send(worker, project)
                case SessionEvidence() if file is not None:
                    file.evidence.append(message)
                case FilePlayed() if file is not None:
                    file.is_played = True
                case _ if file is not None:
                    if isinstance(message, Batch):
                        self._buffered += len(message.events)
                    file.messages.append(message)
                    if isinstance(message, FileRead):
                        worker.file = None
            self._changed.notify_all()

    def _bury(self, worker: _Worker) -> None:
        """Report the file of a worker that died, and start another one, unless it died while it started."""
        worker.connection.close()
        worker.process.join()
        with self._changed:
            self._workers.remove(worker)
            if worker.file is not None:
                worker.file.is_played = True
                worker.file.messages.append(_Died(worker.process.exitcode))
            if worker.is_ready and self._next < len(self._files):
                self._workers.append(self._started())
            self._changed.notify_all()

    def _give_out(self) -> None:
        for worker in self._workers:
            is_due = self._next < min(len(self._files), self._stored + FILES_AHEAD)
            if worker.is_ready and worker.file is None and is_due and self._buffered <= BUFFERED_BYTES:
                worker.file = self._files[self._next]
                self._next += 1
                self._send(worker, worker.file.path)

    def _answer(self) -> None:
        """Answer the questions about sessions before which everything is played."""
        while self._played < len(self._files) and self._files[self._played].is_played:
            self._played += 1
        for worker in self._workers:
            file, question = worker.file, worker.question
            if file is None or question is None or file.position > self._played:
                continue
            worker.question = None
            pending = [
                one for earlier in self._files[self._stored : file.position + 1] for one in earlier.evidence
            ]
            try:
                answer = self._store.earlier_sessions(**question._asdict(), pending=pending)
            except StoreError:
                answer = NO_EARLIER_SESSIONS  # asked again when the session is stored
            file.answers[question.session_id] = (question, answer)
            self._send(worker, answer)

    def _stored_project(self, session_id: str) -> str | None:
        try:
            return self._store.stored_project(session_id)
        except StoreError:
            return None  # asked again when the session is stored

    @staticmethod
    def _send(worker: _Worker, message: object) -> None:
        with suppress(OSError):  # received as the end of the worker
            worker.connection.send(message)


class _OneSession:
    """The store of an importer of which only one session is wanted, by its number."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._sessions = 0
        self.events: Callable[[], Iterable[Event]] | None = None

    def import_session(self, events: Callable[[], Iterable[Event]]) -> ImportOutcome:
        """Keep the events if it is the session."""
        if self._sessions == self._number:
            self.events = events
        self._sessions += 1
        return ImportOutcome("", 0, 0, 0, revised=False)
