"""The full-text index over captured texts: three-letter sequences (trigrams), so that parts of words are found.

A text waits in `content_queue` from its capture until `index` adds it, so no agent waits for the index. The index
holds only which texts contain a trigram (about a tenth of the store's size), so it yields candidates and a search
reads those. `content_numbers` has the number of each indexed text; later texts have higher numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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

_IS_WAITING: Final = "SELECT 1 FROM content_queue LIMIT 1"
_WAITING: Final = """
    SELECT q.digest, c.digest IS NOT NULL AND n.digest IS NULL FROM content_queue AS q
    LEFT JOIN contents AS c ON c.digest = q.digest
    LEFT JOIN content_numbers AS n ON n.digest = q.digest LIMIT ?"""
"""The next digests, and whether each is that of a text to be indexed: one was deleted, or is in the index."""
_NUMBER: Final = "INSERT INTO content_numbers (digest) VALUES (?) ON CONFLICT DO NOTHING"
_COUNTS: Final = "SELECT (SELECT count(*) FROM content_queue), (SELECT count(*) FROM content_numbers)"
_NUMBER_OF: Final = "SELECT id FROM content_numbers WHERE digest = ?"
_MARKS: Final = ", ".join("?" * captured_content.BATCH)
_DIGESTS: Final = f"SELECT id, digest FROM content_numbers WHERE id IN ({_MARKS})"  # noqa: S608  # a constant
_NUMBERS: Final = f"SELECT id, digest FROM content_numbers WHERE digest IN ({_MARKS})"  # noqa: S608  # a constant
_INDEXED: Final = f"DELETE FROM content_queue WHERE digest IN ({_MARKS})"  # noqa: S608  # a constant
_EVERY: Final = "SELECT id FROM content_numbers ORDER BY id DESC"


def searchable(text: str) -> str:
    """Return the part of a text that is searched, without what no index takes: NUL, half surrogate pairs."""
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
    return (
        connection.dialect.content_index.is_supported and connection.execute(_IS_WAITING).fetchone() is not None
    )


def index(connection: Database, *, limit: int = INDEX_BATCH) -> int:
    """Index the next texts inside the caller's transaction; return how many, 0 when all are indexed."""
    trigrams = connection.dialect.content_index
    if not trigrams.is_supported:
        return 0
    waiting = dict(connection.execute(_WAITING, (limit,)).fetchall())
    if not waiting:
        return 0
    new = [digest for digest, is_new in waiting.items() if is_new]
    connection.executemany(_NUMBER, [(digest,) for digest in new])
    numbers = {digest: number for number, digest in _numbers(connection, new).items()}
    texts = captured_content.read_in_batches(connection, new)
    trigrams.add(connection, ((numbers[one.digest], searchable(one.text)) for one in texts))
    for batch in captured_content.batches(waiting):
        connection.execute(_INDEXED, batch)
    return len(waiting)


def remove(connection: Database, digest: str) -> None:
    """Remove a text from the index, before it is deleted."""
    connection.execute("DELETE FROM content_queue WHERE digest = ?", (digest,))
    row = connection.execute(_NUMBER_OF, (digest,)).fetchone()
    if row is None:
        return
    text = captured_content.read(connection, digest)
    if text is not None and connection.dialect.content_index.is_supported:
        connection.dialect.content_index.remove(connection, row[0], searchable(text))
    connection.execute("DELETE FROM content_numbers WHERE id = ?", row)


def clear(connection: Database) -> None:
    """Empty the index, before every text is deleted."""
    connection.execute("DELETE FROM content_queue")
    connection.execute("DELETE FROM content_numbers")
    if connection.dialect.content_index.is_supported:
        connection.dialect.content_index.clear(connection)


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
    trigrams = _trigrams(terms)
    numbers = connection.dialect.content_index.candidates(connection, trigrams) if trigrams else None
    if numbers is None:
        numbers = (number for (number,) in connection.execute(_EVERY))
    if among is None:
        return _digests(connection, numbers)
    wanted = _numbers(connection, among)
    return (wanted[number] for number in numbers if number in wanted)


def _digests(connection: Database, numbers: Iterator[int]) -> Iterator[str]:
    """Yield the digests of the texts with these numbers, in their order."""
    while batch := list(islice(numbers, captured_content.BATCH)):
        digests = dict(connection.execute(_DIGESTS, captured_content.filled_up(batch)).fetchall())
        yield from (digests[number] for number in batch if number in digests)


def _numbers(connection: Database, digests: Iterable[str]) -> dict[int, str]:
    """Return those of the digests that are indexed, by the number of their text."""
    numbers: dict[int, str] = {}
    for batch in captured_content.batches(digests):
        numbers.update(connection.execute(_NUMBERS, batch).fetchall())
    return numbers


def _trigrams(terms: Iterable[str]) -> list[str]:
    trigrams = dict.fromkeys(term[at : at + TRIGRAM] for term in terms for at in range(len(term) - TRIGRAM + 1))
    return list(islice(trigrams, MAXIMUM_TRIGRAMS))
