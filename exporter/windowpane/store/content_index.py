"""The full-text index over captured texts: three-letter sequences (trigrams), so that parts of words are found.

A text waits in `content_queue` from its capture until `index` adds it, so no agent waits for the index. The index
holds only which texts contain a trigram (about a tenth of the store's size), so it yields candidates and a search
reads those. `content_numbers` has the number of each indexed text; later texts have higher numbers.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from typing import Final, NamedTuple

from windowpane.store import captured_content
from windowpane.store.database import Database

INDEX_BATCH: Final = 500
"""Texts indexed in one transaction; about 0.1 s."""
INDEXED_CHARACTERS: Final = 1_000_000
"""Of a longer text only the start is indexed and searched."""
TRIGRAM: Final = 3
MAXIMUM_TRIGRAMS: Final = 32
"""Trigrams of a query that the index is searched for; more would select hardly fewer candidates."""

_CREATE: Final = (
    "CREATE VIRTUAL TABLE IF NOT EXISTS contents_text USING fts5 "
    "(text, content = '', columnsize = 0, detail = none, tokenize = 'trigram')"
)
_EXISTS: Final = "SELECT 1 FROM sqlite_master WHERE name = 'contents_text'"
_WAITING: Final = "SELECT digest FROM content_queue LIMIT ?"
_NUMBER: Final = "INSERT OR IGNORE INTO content_numbers (digest) VALUES (?) RETURNING id"
_ADD: Final = "INSERT INTO contents_text (rowid, text) VALUES (?, ?)"
_REMOVE: Final = "INSERT INTO contents_text (contents_text, rowid, text) VALUES ('delete', ?, ?)"
_COUNTS: Final = "SELECT (SELECT count(*) FROM content_queue), (SELECT count(*) FROM content_numbers)"
_NUMBER_OF: Final = "SELECT id FROM content_numbers WHERE digest = ?"
_DIGEST: Final = "SELECT digest FROM content_numbers WHERE id = ?"
_MATCHING: Final = "SELECT rowid FROM contents_text WHERE contents_text MATCH ? ORDER BY rowid DESC"
_EVERY: Final = "SELECT id FROM content_numbers ORDER BY id DESC"
_REMOVE_ALL: Final = "INSERT INTO contents_text (contents_text) VALUES ('delete-all')"


@cache
def is_supported() -> bool:
    """Return whether this interpreter's SQLite has FTS5 with the trigram tokenizer."""
    with sqlite3.connect(":memory:") as connection:
        try:
            connection.execute(_CREATE)
        except sqlite3.OperationalError:
            return False
    return True


def searchable(text: str) -> str:
    """Return the part of a text that is searched, without what SQLite cannot index: NUL, half surrogate pairs."""
    return text[:INDEXED_CHARACTERS].replace("\0", " ").encode("utf-8", "replace").decode()


class TextCounts(NamedTuple):
    """The number of captured texts, counted without reading them."""

    waiting: int
    all: int


def counts(connection: Database) -> TextCounts:
    """Return how many texts wait to be indexed, and how many there are."""
    waiting, indexed = connection.execute(_COUNTS).fetchone()
    return TextCounts(waiting, waiting + indexed)


def is_behind(connection: Database) -> bool:
    """Return whether a text waits to be indexed."""
    return is_supported() and connection.execute(_WAITING, (1,)).fetchone() is not None


def index(connection: Database, *, limit: int = INDEX_BATCH) -> int:
    """Index the next texts inside the caller's transaction; return how many, 0 when all are indexed."""
    if not is_supported():
        return 0
    waiting = [digest for (digest,) in connection.execute(_WAITING, (limit,))]
    if not waiting:
        return 0
    connection.execute(_CREATE)
    for digest in waiting:
        text = captured_content.read(connection, digest)
        number = None if text is None else connection.execute(_NUMBER, (digest,)).fetchone()
        if text is not None and number is not None:
            connection.execute(_ADD, (number[0], searchable(text)))
    connection.executemany("DELETE FROM content_queue WHERE digest = ?", ((digest,) for digest in waiting))
    return len(waiting)


def remove(connection: Database, digest: str) -> None:
    """Remove a text from the index, before it is deleted."""
    connection.execute("DELETE FROM content_queue WHERE digest = ?", (digest,))
    row = connection.execute(_NUMBER_OF, (digest,)).fetchone()
    if row is None:
        return
    text = captured_content.read(connection, digest)
    if text is not None and is_supported():
        connection.execute(_REMOVE, (row[0], searchable(text)))
    connection.execute("DELETE FROM content_numbers WHERE id = ?", row)


def clear(connection: Database) -> None:
    """Empty the index, before every text is deleted."""
    connection.execute("DELETE FROM content_queue")
    connection.execute("DELETE FROM content_numbers")
    if is_supported() and connection.execute(_EXISTS).fetchone() is not None:
        connection.execute(_REMOVE_ALL)


def start_again(connection: Database) -> None:
    """Empty the index; every stored text waits to be indexed."""
    clear(connection)
    connection.execute("INSERT INTO content_queue SELECT digest FROM contents")


def waiting(connection: Database) -> Iterator[str]:
    """Yield the digests of the texts that are not indexed yet."""
    return (digest for (digest,) in connection.execute("SELECT digest FROM content_queue"))


def candidates(
    connection: Database, terms: Sequence[str], *, among: Iterable[str] | None = None
) -> Iterator[str]:
    """Yield the digests of the indexed texts that may contain all *terms*, the latest text first.

    Terms below three letters select nothing, so without longer ones every text is a candidate. *among* restricts
    them to a few digests, such as those of one session.
    """
    match = _expression(terms)
    usable = match is not None and is_supported() and connection.execute(_EXISTS).fetchone() is not None
    rows = connection.execute(_MATCHING if usable else _EVERY, (match,) if usable else ())
    if among is None:
        digests = ((connection.execute(_DIGEST, row).fetchone() or (None,))[0] for row in rows)
        return (digest for digest in digests if digest is not None)
    numbers = _numbers(connection, among)
    return (numbers[number] for (number,) in rows if number in numbers)


def _numbers(connection: Database, digests: Iterable[str]) -> dict[int, str]:
    """Return those of the digests that are indexed, by the number of their text."""
    rows = ((connection.execute(_NUMBER_OF, (digest,)).fetchone(), digest) for digest in digests)
    return {row[0]: digest for row, digest in rows if row is not None}


def _expression(terms: Iterable[str]) -> str | None:
    trigrams = dict.fromkeys(term[at : at + TRIGRAM] for term in terms for at in range(len(term) - TRIGRAM + 1))
    quoted = ('"' + trigram.replace('"', '""') + '"' for trigram in islice(trigrams, MAXIMUM_TRIGRAMS))
    return " AND ".join(quoted) or None
