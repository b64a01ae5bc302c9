"""Search for text of a session: captured texts, and the blocks that held them.

A text matches when it contains every term of the query, in any case and also within a word; quotation marks make
one term of several words. Texts with the whole query as one phrase come first, then those with its terms apart,
both the latest first: by the time of the last block that held them, not by when it was stored. The index selects
candidates, and each is read to confirm that it matches. A search reads a bounded amount of text and reports
whether it looked at everything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from math import inf
from typing import Any, Final, NamedTuple

import msgspec

from windowpane.core.decoders import json_decoder
from windowpane.core.vocabulary import ContentType
from windowpane.store import captured_content
from windowpane.store.database import Database
from windowpane.store.events import scope_of
from windowpane.store.filters import EventFilter
from windowpane.store.search import content_index
from windowpane.store.search import events as search

READ_CHARACTERS: Final = 8_000_000
"""The most characters that one search reads, in about 0.3 s."""
SORTED_TEXTS: Final = 200
"""Matches of a search that are sorted by time, unless more are wanted; of more than these, the last captured."""
SNIPPET_BEFORE: Final = 60
SNIPPET_AFTER: Final = 140
OCCURRENCES: Final = 5
"""Blocks listed for one text, the latest first."""
REVISIONS: Final = 4
"""Blocks read for one that is listed, since some belong to earlier revisions."""
MAXIMUM_TERMS: Final = 16
FEW_WAITING: Final = 1_000
UNINDEXED_EVENTS: Final = 50_000
"""Of the events that are not indexed yet, those searched for blocks: the latest."""

_HOLDER: Final = "s.session_id, e.body, s.current"
_TERM: Final = re.compile(r'"([^"]+)"|(\S+)')
_BLOCKS: Final = """
    SELECT s.session_id, e.body, b.turn_removed FROM blocks AS b JOIN events AS e ON e.seq = b.event_seq
    JOIN sessions AS s ON s.key = b.session WHERE b.session = ? ORDER BY b.event_seq DESC"""


@dataclass(frozen=True, slots=True)
class ContentFilter:
    """A search for text; only captured texts can be found."""

    text: str
    session_id: str | None = None
    limit: int = 50
    """The most texts returned."""
    projects: tuple[str, ...] | None = None
    """Only texts in sessions of one of these projects."""


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A block that held a text."""

    session_id: str
    agent: str
    turn: int
    at: float | None
    block_id: str
    content_type: ContentType
    tool_name: str | None
    tokens: int
    turn_removed: int | None = None
    """None while it is in the window, and in a search of several sessions."""


class Snippet(NamedTuple):
    """The first match in a text, and the text around it."""

    before: str
    match: str
    after: str

    @property
    def line(self) -> str:
        """The snippet on one line."""
        return " ".join(f"{self.before}{self.match}{self.after}".split())


@dataclass(frozen=True, slots=True)
class TextHit:
    """A captured text that matches, and the latest blocks that held it."""

    digest: str
    chars: int
    snippet: Snippet
    occurrences: tuple[Occurrence, ...]


@dataclass(frozen=True, slots=True)
class ContentHits:
    """The result of a search: texts with the whole phrase, then the others, the latest first in both."""

    hits: tuple[TextHit, ...]
    is_whole: bool
    """False when there may be more: the limit was reached, or the most text that one search reads."""
    texts: int | None
    """Captured texts in the store; None for a reader of some projects, whose texts are not counted."""
    waiting: int
    """Captured texts of the store that are not indexed yet; they are read one by one."""


class _Added(msgspec.Struct):
    id: str
    content_type: ContentType
    digest: str
    tokens: int
    turn: int
    tool_name: str | None = None


class _BlockEvent(msgspec.Struct):
    data: _Added
    agent: str = ""
    at: float | None = None


class _Digest(msgspec.Struct):
    digest: str


class _DigestEvent(msgspec.Struct):
    data: _Digest


_decoder: Final = json_decoder(_BlockEvent)
_digest_decoder: Final = json_decoder(_DigestEvent)


def terms_of(text: str) -> list[str]:
    """Return the terms of a query in lower case: its words, and what is between quotation marks."""
    terms = (quoted or word for quoted, word in _TERM.findall(content_index.searchable(text)))
    return list(dict.fromkeys(term.lower() for term in terms))[:MAXIMUM_TERMS]


def phrase_of(text: str) -> str | None:
    """Return a query of several words as one term; None for one word and where the query has quotation marks."""
    words = content_index.searchable(text).lower().split()
    return " ".join(words) if len(words) > 1 and '"' not in text else None


def find(connection: Database, query: ContentFilter, session: int | None) -> ContentHits:
    """Return the texts that match; *session* is the row number of the query's session."""
    terms, phrase = terms_of(query.text), phrase_of(query.text)
    waiting, texts = content_index.counts(connection)
    if not terms:
        return ContentHits((), is_whole=True, texts=texts, waiting=waiting)
    holders = _Holders(connection, session, query.projects)
    reading = _Reading(connection)
    hits: dict[str, TextHit] = {}
    most = max(query.limit, SORTED_TEXTS)
    for wanted in ([phrase], terms) if phrase else (terms,):
        digests = _digests(connection, wanted, holders, waiting)
        matching: list[TextHit] = []
        for match in reading.matches((one for one in digests if one not in hits), wanted):
            occurrences = holders.of(match.digest)
            if occurrences:
                if len(hits) + len(matching) == most:
                    reading.is_whole = False
                    break
                matching.append(TextHit(match.digest, match.chars, match.snippet, occurrences))
        matching.sort(key=lambda hit: _moment(hit.occurrences[0]), reverse=True)
        hits |= {hit.digest: hit for hit in matching}
    is_whole = reading.is_whole and len(hits) <= query.limit
    return ContentHits(tuple(hits.values())[: query.limit], is_whole=is_whole, texts=texts, waiting=waiting)


def _moment(occurrence: Occurrence) -> float:
    return -inf if occurrence.at is None else occurrence.at


def _digests(connection: Database, terms: list[str], holders: _Holders, waiting: int) -> Iterator[str]:
    """Yield the texts to read: usually a few that wait, which are the latest, and then what the index selects."""
    among = holders.digests
    candidates = content_index.candidates(connection, terms, among=among)
    unindexed = (one for one in content_index.waiting(connection) if among is None or one in among)
    return chain(unindexed, candidates) if waiting <= FEW_WAITING else chain(candidates, unindexed)


class _Match(NamedTuple):
    digest: str
    chars: int
    snippet: Snippet


class _Reading:
    """Reads candidates until the most characters of one search are read."""

    def __init__(self, connection: Database) -> None:
        self.is_whole = True
        self._connection = connection
        self._remaining = READ_CHARACTERS

    def matches(self, digests: Iterable[str], terms: list[str]) -> Iterator[_Match]:
        for captured in captured_content.read_in_batches(self._connection, digests):
            if self._remaining <= 0:
                self.is_whole = False
                return
            text = captured.text
            self._remaining -= len(text) + 200  # a text costs something to fetch, whatever its length
            if contains(text, terms):
                yield _Match(captured.digest, len(text), snippet_of(text, terms))


def contains(text: str, terms: Iterable[str]) -> bool:
    """Return whether a text contains every term, which is in lower case."""
    terms = list(terms)
    if len(text) <= content_index.INDEXED_CHARACTERS and all(term in text for term in terms):
        return True
    folded = content_index.searchable(text).lower()
    return all(term in folded for term in terms)


def snippet_of(text: str, terms: Iterable[str]) -> Snippet:
    """Return the first match of the first term that is found as it is written, else the start of the text."""
    for term in terms:
        match = re.search(re.escape(term), text, re.IGNORECASE)
        if match:
            start, end = match.span()
            before = text[max(0, start - SNIPPET_BEFORE) : start]
            return Snippet(
                before if start <= SNIPPET_BEFORE else f"…{before}",
                text[start:end],
                text[end : end + SNIPPET_AFTER] + ("…" if len(text) > end + SNIPPET_AFTER else ""),
            )
    return Snippet("", "", text[: SNIPPET_BEFORE + SNIPPET_AFTER])


class _Holders:
    """The blocks that held a text: those of one session, or any that the index of events finds by its digest."""

    def __init__(
        self, connection: Database, session: int | None, projects: tuple[str, ...] | None = None
    ) -> None:
        self._connection = connection
        self._is_session = session is not None
        self._projects = projects
        rows: Iterable[tuple[Any, ...]] = ()
        if session is not None:
            rows = connection.execute(_BLOCKS, (session,))
        elif projects is None:
            rows = search.unindexed_events(connection, "block.added", limit=UNINDEXED_EVENTS)
        self._bodies: dict[str, list[tuple[Any, ...]]] = {}
        for row in rows:
            try:
                digest = _digest_decoder.decode(row[1]).data.digest
            except (msgspec.MsgspecError, UnicodeDecodeError, TypeError):
                continue  # a damaged event: its block cannot be shown either
            self._bodies.setdefault(digest, []).append(row)

    @property
    def digests(self) -> Iterable[str] | None:
        """The texts of the session; None without one."""
        return self._bodies.keys() if self._is_session else None

    def of(self, digest: str) -> tuple[Occurrence, ...]:
        """Return the blocks stored last that held the text, at most `OCCURRENCES`, the latest first."""
        rows = self._bodies.get(digest, [])[:OCCURRENCES]
        if not self._is_session and len(rows) < OCCURRENCES:
            limit = OCCURRENCES - len(rows)
            if self._projects is None:
                index = self._connection.dialect.event_index
                rows += index.with_word(self._connection, digest, kind="block.added", limit=limit)
            else:
                rows += self._of_projects(digest, limit)
        located = (_occurrence(digest, *row) for row in rows)
        return tuple(sorted(filter(None, located), key=_moment, reverse=True))

    def _of_projects(self, digest: str, limit: int) -> list[tuple[str, bytes]]:
        """Return session id and body of the latest blocks with the text in sessions of the projects."""
        query = EventFilter(
            types=("block.added",),
            text=digest,
            limit=limit * REVISIONS,
            newest_first=True,
            projects=self._projects,
        )
        scope = scope_of(self._connection, query)
        rows = [] if scope is None else search.find(self._connection, query, scope, _HOLDER)
        return [(session_id, body) for session_id, body, current in rows if current][:limit]


def _occurrence(digest: str, session_id: str, body: bytes, turn_removed: int | None = None) -> Occurrence | None:
    """Return the block of a stored `block.added`; None for a damaged one and for a block with another text."""
    try:
        event = _decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, TypeError):
        return None
    block = event.data
    if block.digest != digest:
        return None
    return Occurrence(
        session_id, event.agent, block.turn, event.at,
        block.id, block.content_type, block.tool_name, block.tokens, turn_removed,
    )  # fmt: skip


def delete(connection: Database, digest: str | None) -> None:
    """Delete the text of a digest, or all texts for None, and take them out of the index."""
    if digest is None:
        content_index.clear(connection)
    else:
        content_index.remove(connection, digest)
    captured_content.delete(connection, digest)
