"""Outlines of recordings: their statements about their sessions, without playing them."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import cycle
from multiprocessing import Pipe
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Unpack

from msgspec.structs import replace

from windowpane.core.characters import encodable
from windowpane.core.events import Usage
from windowpane.core.names import Description, SessionDescriptions, without_wrappers
from windowpane.effects.processes import rare_collection, without_current_folder
from windowpane.exceptions import SourceError
from windowpane.models.catalog import packaged_catalog
from windowpane.sources.imports.noted_outlines import SessionOutline
from windowpane.sources.imports.worker_processes import load_workers, worthwhile
from windowpane.sources.transcripts.databases import DatabaseReader
from windowpane.sources.transcripts.discovery import all_readers, reader_for
from windowpane.sources.transcripts.playback import cost_of_call, session_id_of
from windowpane.sources.transcripts.reader import FileStats, Reader
from windowpane.sources.transcripts.records import (
    Broken,
    CallSent,
    Compacted,
    ContentAdded,
    LimitStated,
    ModelCalled,
    Record,
    SessionDescribed,
    SessionOpened,
)

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

_log: Final = logging.getLogger(__name__)

MINIMUM_BYTES: Final = 64 * 2**20
"""Below so much to list, other processes take longer to start than this one takes."""
END_SECONDS: Final = 5.0


def outlined_files(
    paths: Sequence[Path], *, first_message_titles: bool
) -> Iterator[tuple[Path, list[SessionOutline]]]:
    """Yield the files with the outlines of their sessions, read by several processes where that is worth it."""
    outlines = partial(outlines_of, first_message_titles=first_message_titles)
    processes = worthwhile(paths, minimum_bytes=MINIMUM_BYTES)
    if not processes:
        yield from zip(paths, map(outlines, paths), strict=True)
        return
    start = load_workers()
    readers: list[tuple[Connection, BaseProcess]] = []
    try:
        for number in range(processes):
            own, its = Pipe(duplex=False)
            process = start(target=_send, args=(its, paths[number::processes], outlines), daemon=True)
            with without_current_folder():
                process.start()
            its.close()
            readers.append((own, process))
        for path, (connection, _) in zip(paths, cycle(readers), strict=False):
            yield path, connection.recv()
    except EOFError:  # the process died: the import reads the rest without outlines
        pass
    finally:
        for connection, process in readers:
            connection.close()
            process.join(END_SECONDS)
            process.terminate()


def _send(
    connection: Connection, paths: Sequence[Path], outlines: Callable[[Path], list[SessionOutline]]
) -> None:
    """Send the outlines of each of the files, until the other process has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the other process stops this one
    with rare_collection(), suppress(OSError):
        for path in paths:
            connection.send(outlines(path))


def outlines_of(path: Path, *, first_message_titles: bool) -> list[SessionOutline]:
    """Return the outlines of the sessions in a recording; none where it cannot be read."""
    try:
        reader = reader_for(path, all_readers())
        return [
            outline
            for records in _recordings(path, reader)
            for outline in _outlines(records, path, reader.format, first_message_titles=first_message_titles)
        ]
    except Exception as error:  # noqa: BLE001  # an internal error too: the import meets it again
        _log.debug("%s: no outline: %r", path, error)
        return []


def latest_sessions(database: Path) -> Iterator[tuple[float, SessionOutline]]:
    """Yield the sessions of a database with the times of their last changes, the latest first."""
    try:
        reader = reader_for(database, all_readers())
        assert isinstance(reader, DatabaseReader)
        changes = {name: state.changed_at or 0.0 for name, state in reader.sessions(database).items()}
        for name in sorted(changes, key=changes.__getitem__, reverse=True):
            records = reader.read_session(database, name, stats=FileStats(), problems=[])
            for outline in _outlines(records, database, reader.format, first_message_titles=False):
                yield changes[name], outline
    except SourceError as error:
        _log.debug("%s: no outline: %r", database, error)


def _recordings(path: Path, reader: Reader) -> Iterator[Iterable[Record]]:
    if isinstance(reader, DatabaseReader):
        for name in reader.sessions(path):
            yield reader.read_session(path, name, stats=FileStats(), problems=[])
    else:
        yield reader.read(path, stats=FileStats(), problems=[])


def _outlines(
    records: Iterable[Record], path: Path, source: str, *, first_message_titles: bool
) -> list[SessionOutline]:
    folds: dict[str, _Fold] = {}
    fold = None
    for record in records:
        if isinstance(record, SessionOpened):
            fold = folds.get(record.session_key)
            if fold is None:
                fold = folds[record.session_key] = _Fold(first_message_titles=first_message_titles)
        if fold is not None:
            fold.add(record)
    return [fold.result(key, path, source) for key, fold in folds.items()]


class _Fold:
    """The outline of one session, from its records."""

    def __init__(self, *, first_message_titles: bool) -> None:
        self._titles = first_message_titles
        self._catalog = packaged_catalog()
        self._descriptions = SessionDescriptions()
        self._names: dict[str, Any] = {"title": "", "folder": "", "repository": "", "branch": ""}
        self._opened: SessionOpened | None = None
        self._model = ""
        self._limit: int | None = None
        self._first_at: float | None = None
        self._last_at: float | None = None
        self._at: float | None = None
        self._calls = self._compactions = 0
        self._last_tokens: int | None = None
        self._cost: float | None = None
        self._is_cost_partial = self._is_observed = False
        self._first_call = ""

    def add(self, record: Record) -> None:
        """Add the next record."""
        if not isinstance(record, Broken) and record.at is not None:
            self._at = at = record.at
            if self._first_at is None:
                self._first_at = at
            if self._last_at is None or at > self._last_at:
                self._last_at = at
        method = _METHODS.get(type(record))
        if method is not None:
            method(self, record)

    def result(self, key: str, path: Path, source: str) -> SessionOutline:
        """Return the outline."""
        opened = self._opened
        assert opened is not None
        parent = opened.parent_key
        outline = SessionOutline(
            session_id=session_id_of(source, key),
            file=encodable(str(path)),
            agent=opened.agent,
            model=self._model,
            parent_session_id=None if parent is None else session_id_of(source, parent),
            limit_tokens=self._limit,
            first_at=self._first_at,
            last_at=self._last_at,
            **self._names,
        )
        if self._is_observed:
            return outline
        return replace(
            outline, calls=self._calls, compactions=self._compactions, last_tokens=self._last_tokens,
            cost_dollars=self._cost, is_cost_partial=self._is_cost_partial, first_call=self._first_call,
        )  # fmt: skip

    def _open(self, record: SessionOpened) -> None:
        self._opened = self._opened or record
        self._model = record.model or self._model
        self._limit = record.limit_tokens or self._limit

    def _content(self, record: ContentAdded) -> None:
        if (
            record.content_type == "user_message"
            and record.text
            and self._titles
            and not self._descriptions.has_title
        ):
            self._describe(title=without_wrappers(record.text), title_source="first_message")

    def _described(self, record: SessionDescribed) -> None:
        self._describe(**record.description())

    def _describe(self, **stated: Unpack[Description]) -> None:
        event = self._descriptions.state(**stated)
        if event is not None:
            for name in self._names:
                self._names[name] = getattr(event, name) or self._names[name]

    def _called(self, record: ModelCalled) -> None:
        self._model = record.model or self._model
        self._calls += 1
        if self._calls == 1:
            self._first_call = record.response_id or ""
        self._is_cost_partial |= record.is_start
        usage, cost = record.usage, record.cost_dollars
        if usage is not None:
            self._last_tokens = usage.input_total if record.window_tokens is None else record.window_tokens
            cost = cost_of_call(record, self._price(self._model, usage), self._price)
        if cost is not None:
            self._cost = (self._cost or 0.0) + cost

    def _price(self, model: str, usage: Usage) -> float | None:
        return self._catalog.cost_dollars(model, usage, self._at)

    def _compacted(self, _record: Compacted) -> None:
        self._compactions += 1

    def _limit_stated(self, record: LimitStated) -> None:
        self._limit = record.limit_tokens

    def _observed(self, _record: CallSent) -> None:
        self._is_observed = True


_METHODS: Final[Mapping[type, Callable[[_Fold, Any], None]]] = {
    SessionOpened: _Fold._open,
    ContentAdded: _Fold._content,
    SessionDescribed: _Fold._described,
    ModelCalled: _Fold._called,
    Compacted: _Fold._compacted,
    LimitStated: _Fold._limit_stated,
    CallSent: _Fold._observed,
}
