"""Recordings to replay: from files through the readers, from the store, or several joined end to end.

A source is a small description that can be sent to a worker process, which loads the records itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Protocol

from windowpane.core.events import BlockAdded, Event, SessionEnded, TurnEnded, WindowRolled
from windowpane.core.protocols import TokenCounter
from windowpane.core.store_names import StoreName
from windowpane.core.vocabulary import DERIVED_TYPES, STATIC_TYPES
from windowpane.core.window.blocks import Block
from windowpane.exceptions import SourceError
from windowpane.models.tokens import counter_for
from windowpane.sources.transcripts.discovery import all_readers, files_of, reader_for
from windowpane.sources.transcripts.formats.exchanges.contents import contents_of
from windowpane.sources.transcripts.playback import session_id_of, session_keys
from windowpane.sources.transcripts.reader import FileStats
from windowpane.sources.transcripts.records import (
    Cleared,
    ContentAdded,
    ModelCalled,
    Record,
    SessionClosed,
    SessionOpened,
)
from windowpane.store.filters import EventFilter
from windowpane.store.open import open_reader
from windowpane.store.reads.project_reader import EventReader

NOT_CAPTURED: Final = "[content {number} was not captured]"
MAXIMUM_MISSING: Final = 0.05
"""Share of the tokens that may lack text in a replay that reads content."""
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
    """The model of most of its calls; empty if the recording does not name one."""
    missing_share: float = 0.0
    """Share of its tokens whose text was not captured."""
    replacements: dict[str, Block] = field(default_factory=dict)
    """Texts that replace content that was not captured, with the block of that content."""

    @property
    def has_content(self) -> bool:
        """Nearly all of its text is known; without it only setups that read no content can be replayed."""
        return self.missing_share <= MAXIMUM_MISSING

    def counter(self) -> TokenCounter:
        """Return the token counter of its model, with its vocabulary loaded and its counts cached."""
        return _CachingCounter(counter_for(self.model, wait=True), self.replacements)


class RecordingSource(Protocol):
    """A description of a recording that can be sent to another process."""

    @property
    def name(self) -> str:
        """The session's name in tables, unique within a replay."""
        ...

    def load(self) -> Recording:
        """Return the recording. Raises `SourceError` or `StoreError`."""
        ...


@dataclass(frozen=True, slots=True)
class FileSource:
    """A session of a recording on disk."""

    path: Path
    key: str
    name: str

    def load(self) -> Recording:
        """Return this session's records of the file."""
        reader = reader_for(self.path, all_readers())
        read = reader.read(self.path, stats=FileStats(), problems=[])
        records = list(of_session(contents_of(read), self.key))
        return Recording(self.name, self.key, records, model_of(records))


@dataclass(frozen=True, slots=True)
class StoreSource:
    """A session of the event store, replayed from the content it added itself."""

    store: StoreName
    session_id: str

    @property
    def name(self) -> str:
        """The session's id."""
        return self.session_id

    def load(self) -> Recording:
        """Return its content with the captured texts; other texts are replaced by ones of the same size."""
        with closing(open_reader(self.store)) as store:
            return _from_store(store, self.session_id)


@dataclass(frozen=True, slots=True)
class JoinedSource:
    """Several sessions as one, in order: a long conversation where no single recording is long enough."""

    name: str
    parts: tuple[RecordingSource, ...]

    def load(self) -> Recording:
        """Return the sessions' records with the first one's system prompt and tools, and distinct call ids."""
        records: list[Record] = []
        for number, part in enumerate(self.parts):
            records += _continued(part.load(), number, self.name)
        return Recording(self.name, self.name, records, model_of(records))


def find_recordings(paths: Iterable[Path]) -> Iterator[FileSource]:
    """Yield every session of the files and folders. Raises `SourceError` for an unreadable file named itself."""
    paths = list(paths)
    explicit = {path for path in paths if not path.is_dir()}
    for path in files_of(paths):
        try:
            reader = reader_for(path, all_readers())
            keys = session_keys(reader.read(path, stats=FileStats(), problems=[]))
        except SourceError:
            if path in explicit:
                raise
            continue
        for key in keys:
            yield FileSource(path, key, session_id_of(reader.format, key))


def of_session(records: Iterable[Record], key: str) -> Iterator[Record]:
    """Yield the records of one session of several."""
    inside = False
    for record in records:
        if isinstance(record, SessionOpened):
            inside = record.session_key == key
        if inside:
            yield record


def model_of(records: Iterable[Record]) -> str:
    """Return the model of most calls, else the one the session opens with."""
    called: Counter[str] = Counter()
    opened = ""
    for record in records:
        if isinstance(record, ModelCalled) and record.model:
            called[record.model] += 1
        elif isinstance(record, SessionOpened):
            opened = opened or record.model
    return called.most_common(1)[0][0] if called else opened


def _continued(recording: Recording, number: int, key: str) -> Iterator[Record]:
    for record in recording.records:
        if isinstance(record, SessionOpened):
            if number == 0:
                yield SessionOpened(key, record.agent, record.model)
        elif isinstance(record, ContentAdded):
            if number and record.content_type in STATIC_TYPES:
                continue
            call_id = record.tool_call_id
            yield replace(record, tool_call_id=None if call_id is None else f"{number}-{call_id}", at=None)
        elif isinstance(record, ModelCalled):
            yield replace(record, at=None)


def _from_store(store: EventReader, session_id: str) -> Recording:
    row = store.session(session_id)
    if row is None:
        raise SourceError(session_id, "no such session in the store")
    records: list[Record] = [SessionOpened(session_id, row.agent, row.model)]
    replacements: dict[str, Block] = {}
    for event in _events(store, session_id):
        data = event.data
        if isinstance(data, BlockAdded):
            if _is_first_hand(data.block):
                records.append(_content(store, data.block, event.at, replacements))
        elif isinstance(data, TurnEnded):
            records.append(ModelCalled(data.usage, event.context.model, at=event.at))
        elif isinstance(data, WindowRolled) and data.reason == "clear":
            records.append(Cleared(event.at))
        elif isinstance(data, SessionEnded):
            records.append(SessionClosed(data.reason, event.at))
    missing = sum(block.tokens for block in replacements.values())
    total = sum(one.tokens or 0 for one in records if isinstance(one, ContentAdded))
    share = missing / total if total else float(bool(replacements))
    return Recording(session_id, session_id, records, row.model, share, replacements)


def _is_first_hand(block: Block) -> bool:
    """Return True if the block neither replaces other content nor was carried into another window."""
    return block.content_type not in DERIVED_TYPES and block.content_type != "unattributed" and not block.replaces


def _content(store: EventReader, block: Block, at: float | None, replacements: dict[str, Block]) -> ContentAdded:
    text = store.content(block.digest) if block.digest else None
    media = int(block.content_type == "media")
    if text is None and not media:
        text = NOT_CAPTURED.format(number=len(replacements) + 1)
        replacements[text] = block
    return ContentAdded(
        block.content_type, text, block.tool_call_id, block.tool_name, media=media, tokens=block.tokens, at=at
    )


def _events(store: EventReader, session_id: str) -> Iterator[Event]:
    after = 0
    while batch := store.events(EventFilter(session_id=session_id, after_seq=after, limit=EVENTS_READ)):
        after = batch[-1].seq
        yield from (stored.event for stored in batch)


class _CachingCounter:
    """Counts each text once; a replacement counts as the content that it replaces."""

    def __init__(self, counter: TokenCounter, replacements: Mapping[str, Block]) -> None:
        self._counter = counter
        self._counts = {text: self._text_tokens(block) for text, block in replacements.items()}
        self._most = len(replacements) + REMEMBERED_COUNTS
        self.source = counter.source

    def count(self, text: str) -> int:
        """Return the tokens of *text*, or of the content that it replaces."""
        tokens = self._counts.get(text)
        if tokens is None:
            tokens = self._counter.count(text)
            if len(self._counts) < self._most:
                self._counts[text] = tokens
        return tokens

    def _text_tokens(self, block: Block) -> int:
        """Return the tokens of a block's text; those of a tool call hold its tool's name too."""
        name = block.tool_name if block.content_type == "tool_call" else None
        return max(0, block.tokens - self._counter.count(name)) if name else block.tokens
