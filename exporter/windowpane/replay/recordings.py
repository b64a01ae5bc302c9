"""Where replayed sessions come from: files through the readers, or the store where content was captured.

A source is a small description that a worker process can be sent; the records are loaded where they are used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from windowpane.core.events import BlockAdded, Event, SessionEnded, TurnEnded, WindowRolled
from windowpane.core.protocols import TokenCounter
from windowpane.core.vocabulary import DERIVED_TYPES
from windowpane.core.window.blocks import Block
from windowpane.exceptions import SourceError
from windowpane.models.tokens import counter_for
from windowpane.sources.discovery import all_readers, files_of, reader_for
from windowpane.sources.playback import session_id_of, session_keys
from windowpane.sources.reader import FileStats
from windowpane.sources.records import Cleared, ContentAdded, ModelCalled, Record, SessionClosed, SessionOpened
from windowpane.store.interface import EventFilter, EventReader
from windowpane.store.reads import SqliteReader

NOT_CAPTURED: Final = "[content {number} was not captured]"
REMEMBERED_COUNTS: Final = 20_000
EVENTS_READ: Final = 2_000
"""Events of a stored session read at a time."""


@dataclass(frozen=True, slots=True)
class Recording:
    """One recorded session, ready to be replayed."""

    name: str
    key: str
    records: Sequence[Record]
    model: str
    """That most of its calls went to; empty when the recording does not say."""
    has_content: bool = True
    """Whether its texts are known; without them only what does not read content can be replayed."""
    stand_ins: dict[str, int] = field(default_factory=dict)
    """Texts that stand for what was not captured, and the tokens that was."""

    def counter(self) -> TokenCounter:
        """The counter of its model, with its vocabulary loaded; remembers what it counted."""
        return _RememberingCounter(counter_for(self.model, wait=True), self.stand_ins)


class RecordingSource(Protocol):
    """Something that gives a recording; can be sent to another process."""

    @property
    def name(self) -> str:
        """The session's name in tables; tells it from all others of a replay."""
        ...

    def load(self) -> Recording:
        """Read it. Raises `SourceError` or `StoreError`."""
        ...


@dataclass(frozen=True, slots=True)
class FileSource:
    """A session of a recording on disk."""

    path: Path
    key: str
    name: str

    def load(self) -> Recording:
        """Read the file and keep this session's records."""
        reader = reader_for(self.path, all_readers())
        records = list(of_session(reader.read(self.path, stats=FileStats(), problems=[]), self.key))
        return Recording(self.name, self.key, records, model_of(records))


@dataclass(frozen=True, slots=True)
class StoreSource:
    """A session of the event store, replayed from what it recorded at first hand."""

    path: Path
    session_id: str

    @property
    def name(self) -> str:
        """The session's id."""
        return self.session_id

    def load(self) -> Recording:
        """Read its events, with the captured texts; those that were not kept are stood in for by their size."""
        with closing(SqliteReader(self.path)) as store:
            return _from_store(store, self.session_id)


def find_recordings(paths: Iterable[Path]) -> Iterator[FileSource]:
    """Every session of the files and of those below the folders. Raises `SourceError` for a file named itself."""
    paths = list(paths)
    named = {path for path in paths if not path.is_dir()}
    for path in files_of(paths):
        try:
            reader = reader_for(path, all_readers())
            keys = session_keys(reader.read(path, stats=FileStats(), problems=[]))
        except SourceError:
            if path in named:
                raise
            continue
        for key in keys:
            yield FileSource(path, key, session_id_of(reader.format, key))


def of_session(records: Iterable[Record], key: str) -> Iterator[Record]:
    """The records of one session of several."""
    on = False
    for record in records:
        if isinstance(record, SessionOpened):
            on = record.session_key == key
        if on:
            yield record


def model_of(records: Iterable[Record]) -> str:
    """The model most of the calls went to, else the one the session opens with."""
    called: Counter[str] = Counter()
    opened = ""
    for record in records:
        if isinstance(record, ModelCalled) and record.model:
            called[record.model] += 1
        elif isinstance(record, SessionOpened):
            opened = opened or record.model
    return called.most_common(1)[0][0] if called else opened


def _from_store(store: EventReader, session_id: str) -> Recording:
    row = store.session(session_id)
    if row is None:
        raise SourceError(session_id, "no such session in the store")
    records: list[Record] = [SessionOpened(session_id, row.agent, row.model)]
    stand_ins: dict[str, int] = {}
    for event in _events(store, session_id):
        data = event.data
        if isinstance(data, BlockAdded):
            if _is_first_hand(data.block):
                records.append(_content(store, data.block, event.at, stand_ins))
        elif isinstance(data, TurnEnded):
            records.append(ModelCalled(data.usage, event.context.model, at=event.at))
        elif isinstance(data, WindowRolled) and data.reason == "clear":
            records.append(Cleared(event.at))
        elif isinstance(data, SessionEnded):
            records.append(SessionClosed(data.reason, event.at))
    return Recording(session_id, session_id, records, row.model, has_content=not stand_ins, stand_ins=stand_ins)


def _is_first_hand(block: Block) -> bool:
    """Not what stands for other content, nor what was carried into another window."""
    return block.content_type not in DERIVED_TYPES and block.content_type != "unattributed" and not block.replaces


def _content(store: EventReader, block: Block, at: float | None, stand_ins: dict[str, int]) -> ContentAdded:
    text = store.content(block.digest) if block.digest else None
    media = int(block.content_type == "media")
    if text is None and not media:
        text = NOT_CAPTURED.format(number=len(stand_ins) + 1)
        stand_ins[text] = block.tokens
    return ContentAdded(
        block.content_type, text, block.tool_call_id, block.tool_name, media=media, tokens=block.tokens, at=at
    )


def _events(store: EventReader, session_id: str) -> Iterator[Event]:
    after = 0
    while batch := store.events(EventFilter(session_id=session_id, after_seq=after, limit=EVENTS_READ)):
        after = batch[-1].seq
        yield from (stored.event for stored in batch)


class _RememberingCounter:
    """Counts each text once; one that stands for content that was not captured counts as that content did."""

    def __init__(self, counter: TokenCounter, stand_ins: Mapping[str, int]) -> None:
        self._counter = counter
        self._known = dict(stand_ins)
        self._most = len(stand_ins) + REMEMBERED_COUNTS
        self.source = counter.source

    def count(self, text: str) -> int:
        """Tokens of *text*, or of what it stands for."""
        known = self._known.get(text)
        if known is None:
            known = self._counter.count(text)
            if len(self._known) < self._most:
                self._known[text] = known
        return known
