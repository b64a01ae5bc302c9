"""Files read, played and stored by several processes, one after the other in their order.

What is stored does not depend on the number of processes. A session may learn from those that took place before
it, of which some may still be played by other processes. So it is played with what is known of them: nearly all
that counts once their first turn is played, and their first compaction where none is stored. Before a session is
stored, everything before it is stored; where the store then gives another answer than before, the session is
played again.

The files of a worker that died are read again, in their places: what is stored is the same. A file whose second
worker dies too is reported, and read again by the next import.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing import Pipe
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Final

from windowpane.core.agents import SessionEvidence
from windowpane.effects.processes import without_current_folder
from windowpane.sources.imports.file_report import FileReport
from windowpane.sources.imports.worker import (
    EvidenceWanted,
    Order,
    Ready,
    ToRead,
    Turn,
    TurnWanted,
    WorkerSetup,
    work,
)
from windowpane.sources.imports.worker_processes import load_workers, size_of, worthwhile

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess
    from pathlib import Path
    from types import TracebackType

    from windowpane.alerts.rules import Rule
    from windowpane.sources.imports.worker import Message
    from windowpane.sources.transcripts.playback_settings import PlaybackSettings
    from windowpane.store.read_files import FileState
    from windowpane.store.store import Store

HELD_BYTES: Final = 32 * 2**20
"""Size of the files that a worker has played and not stored yet, from which on it waits for its turn."""
END_SECONDS: Final = 5.0


@dataclass(eq=False, slots=True)
class _File:
    """A file that is read by a worker."""

    number: int
    """Its position among all files."""
    path: Path
    state: FileState | None
    bytes: int
    is_known: bool = False
    """Its first turn is played."""
    compacts: bool = False
    """It holds a compaction, which may not be played yet."""
    evidence: dict[str, SessionEvidence] = field(default_factory=dict)
    """Of its sessions, as far as they are played; until it is stored."""
    report: FileReport | None = None
    """Once it is stored, or cannot be."""
    has_ended_worker: bool = False
    """A worker died while it worked on it."""

    def may_add(self, wanted: EvidenceWanted) -> bool:
        """Return whether evidence for a later session is still expected."""
        if not self.is_known or not self.compacts or wanted.knows_level:
            return not self.is_known
        played = (one for one in self.evidence.values() if one.is_of(wanted.agent, wanted.model, wanted.project))
        return any(one.compaction_tokens is None for one in played)

    def finish(self) -> None:
        """Expect no more evidence."""
        self.is_known, self.compacts = True, False


@dataclass(eq=False, slots=True)
class _Worker:
    """One process, and the files that it plays or has played, in their order."""

    process: BaseProcess
    connection: Connection
    has_started: bool = False
    files: deque[_File] = field(default_factory=deque)
    current: _File | None = None
    """The file that it works on."""
    is_free: bool = False
    """It takes orders."""
    wants_turn: bool = False
    """It takes no other order than turns, until the last of its files has its turn."""
    wanted: EvidenceWanted | None = None
    """The evidence that it waits for."""

    def may_read(self, file: _File) -> bool:
        """Return whether it holds little, and nothing that is stored after *file*."""
        is_next = not self.files or self.files[-1].number < file.number
        return is_next and not self.wants_turn and sum(one.bytes for one in self.files) < HELD_BYTES


class ReadingWorkers:
    """The worker processes of one import. Entered, they may be started; left, they have ended."""

    def __init__(
        self,
        store: Store,
        *,
        playback: PlaybackSettings,
        rules: Sequence[Rule] | None = None,
        processes: int | None = None,
    ) -> None:
        """Read with *processes* workers; None for one per processor, if there is enough to read."""
        self._setup = WorkerSetup.of(store, playback, rules)
        self._processes = processes
        self._workers: list[_Worker] = []
        self._files: dict[Path, _File] = {}
        self._unstored: deque[_File] = deque()
        """Files without a report, in their order."""
        self._unread: deque[_File] = deque()
        """Files that no worker has, in their order."""

    def __enter__(self) -> ReadingWorkers:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """End the processes: they close their stores, unless there was an error."""
        for worker in self._workers:
            worker.connection.close()
            if kind is not None:
                worker.process.terminate()
        for worker in self._workers:
            worker.process.join(END_SECONDS)
            worker.process.terminate()

    def start(self, paths: Collection[Path]) -> bool:
        """Start the processes that will read these files; False if they would take longer to start."""
        count = min(len(paths), self._processes or worthwhile(paths))
        self._workers = [self._started() for _ in range(count)]
        return count > 0

    def add(self, files: Mapping[Path, FileState | None]) -> None:
        """Read further files, given with their states, in this order."""
        added = {
            path: _File(number, path, state, size_of(path))
            for number, (path, state) in enumerate(files.items(), len(self._files))
        }
        self._files |= added
        self._unstored += added.values()
        self._unread += added.values()

    def import_file(self, path: Path) -> FileReport | None:
        """Return the report on the next file once it is stored; None where no worker can read it."""
        file = self._files[path]
        while True:
            self._answer()
            self._give_orders()  # for the files after this one too, before its report is returned
            if file.report is not None:
                return file.report
            if file in self._unread and all(worker.files for worker in self._workers):  # by ones that died
                self._unread.remove(file)
                self._unstored.remove(file)
                return None
            connections = {worker.connection: worker for worker in self._workers}
            for ready in wait(list(connections)):
                self._receive_from(connections[ready])  # type: ignore[index]

    def _started(self) -> _Worker:
        start = load_workers()
        own, its = Pipe()
        process = start(target=work, args=(its, self._setup), name="windowpane-import", daemon=True)
        with without_current_folder():
            process.start()
        its.close()
        return _Worker(process, own)

    def _give_orders(self) -> None:
        """Let each worker that is free store its first file if it is its turn, else read another file."""
        for worker in self._workers:
            if not worker.is_free:
                continue
            if worker.files and worker.files[0] is self._unstored[0]:
                self._send(worker, worker.files[0], Turn())
            elif self._unread and worker.may_read(self._unread[0]):
                file = self._unread.popleft()
                worker.files.append(file)
                self._send(worker, file, ToRead(file.path, file.state))

    def _send(self, worker: _Worker, file: _File, order: Order) -> None:
        worker.current, worker.is_free = file, False
        with suppress(OSError):  # received as the end of the worker
            worker.connection.send(order)

    def _answer(self) -> None:
        """Send evidence to the workers that wait for it, unless an earlier file may add to it."""
        for worker in self._workers:
            if worker.wanted is None:
                continue
            position = self._unstored.index(worker.files[-1])
            if any(file.may_add(worker.wanted) for file in islice(self._unstored, position)):
                continue
            worker.wanted = None
            evidence = [one for file in islice(self._unstored, position + 1) for one in file.evidence.values()]
            with suppress(OSError):  # received as the end of the worker
                worker.connection.send(evidence)

    def _receive_from(self, worker: _Worker) -> None:
        try:
            message: Message = worker.connection.recv()
        except (EOFError, OSError):
            self._bury(worker)
            return
        file = worker.current
        match message:
            case Ready():
                worker.has_started = worker.is_free = True
                worker.wants_turn = False
                if file is not None:
                    file.finish()
            case EvidenceWanted() if file is not None:
                worker.wanted, file.compacts = message, message.compacts
            case SessionEvidence() if file is not None:
                file.evidence[message.session_id] = message
                file.is_known = True
            case TurnWanted() if file is not None:
                worker.wants_turn = worker.is_free = True
                file.finish()
            case FileReport():
                worker.is_free = True
                self._end(worker.files.popleft(), message)

    def _end(self, file: _File, report: FileReport) -> None:
        file.report = report
        file.evidence.clear()
        self._unstored.remove(file)

    def _bury(self, worker: _Worker) -> None:
        """Let the files of a worker that died be read by another one, unless it died while it started.

        A file is reported whose second worker died.
        """
        worker.connection.close()
        worker.process.join()
        self._workers.remove(worker)
        file = worker.current
        if file is not None and file in worker.files:
            if file.has_ended_worker:
                worker.files.remove(file)
                error = f"the process that read it ended ({worker.process.exitcode})"
                self._end(file, FileReport(file.path, error=error))
            file.has_ended_worker = True
        for file in worker.files:
            file.finish()  # a worker that waits may be the next to read it
        self._unread.extendleft(reversed(worker.files))
        if worker.has_started and self._unread:
            self._workers.append(self._started())
