"""PostgreSQL's indexes for search, without any extension: GIN over word vectors and over numbers of trigrams.

`events_text` holds the words of an event as a `tsvector` made of the words that a search compares, so that no
configuration for a language drops or changes one. `contents_text` holds a checksum of each trigram; two trigrams
with one checksum select a text too many, which the search reads and drops.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final
from zlib import crc32

from windowpane.store.database import Database, WordSearch
from windowpane.store.search.events import words_of

GIN_TABLES: Final = (
    "CREATE TABLE events_text (seq BIGINT PRIMARY KEY, words tsvector NOT NULL)",
    "CREATE TABLE contents_text (id BIGINT PRIMARY KEY, trigrams int4[] NOT NULL)",
)
GIN_INDEXES: Final = {
    "events_text_words": "events_text USING gin (words)",
    "contents_text_trigrams": "contents_text USING gin (trigrams)",
}
"""Name and definition of each index."""
STATEMENT_CHARACTERS: Final = 4_000_000
"""Words or numbers that one statement adds, as text."""
MAXIMUM_WORD_BYTES: Final = 2_000
"""PostgreSQL's limit is 2,046; a longer word is indexed and searched by its start."""
MAXIMUM_VECTOR_BYTES: Final = 1_000_000
"""PostgreSQL's limit is one MiB with 4 bytes beside each word; the words after it are not indexed."""
TRIGRAM: Final = 3
SHORT_WORDS: Final = 400
"""So many words of at most 500 characters are below both limits, whatever their characters."""

_ADDED: Final = (
    "FROM unnest(CAST(string_to_array(?, ' ') AS bigint[]), string_to_array(?, E'\\n')) AS new (number, parts) "
    "ON CONFLICT DO NOTHING"
)
"""The rows of one statement: their numbers, and the parts of each on a line, between spaces."""
_ADD: Final = (
    "INSERT INTO events_text (seq, words) "
    f"SELECT number, array_to_tsvector(string_to_array(coalesce(parts, ''), ' ')) {_ADDED}"  # a constant
)
_REMOVE: Final = "DELETE FROM events_text WHERE seq IN (SELECT seq FROM events WHERE session = ? AND seq <= ?)"
_WITH_RARE: Final = "WITH t AS MATERIALIZED (SELECT seq FROM events_text WHERE words @@ CAST(? AS tsquery))"
"""The events of a rare word by the index: the planner expects far too many of one without statistics."""
_IN_USE: Final = f"{_WITH_RARE} SELECT 1 FROM t JOIN events AS e ON e.seq = t.seq LIMIT 1"  # noqa: S608
_WITH_WORD: Final = f"""{_WITH_RARE}
    SELECT s.session_id, e.body FROM t
    CROSS JOIN LATERAL (SELECT session, type, body FROM events WHERE seq = t.seq OFFSET 0) AS e
    JOIN sessions AS s ON s.key = e.session AND s.current = 1
    WHERE e.type = (SELECT id FROM event_types WHERE name = ?) ORDER BY t.seq DESC LIMIT ?"""  # noqa: S608
"""OFFSET 0 has each event fetched by its number; a plain join may walk all events of the type instead."""
_COMMON: Final = """
    SELECT CAST(CAST(most_common_elems AS text) AS text[]) FROM pg_stats
    WHERE schemaname = current_schema() AND tablename = 'events_text' AND attname = 'words'"""


class GinEventIndex:
    """The words of events in the table `events_text`."""

    def add(self, database: Database, texts: Iterable[tuple[int, str]]) -> None:
        """Add events by number with their searchable text."""
        _add(database, _ADD, ((seq, " ".join(_vector(words_of(text)))) for seq, text in texts))

    def remove(self, database: Database, session: int, *, indexed: int) -> None:
        """Remove a session's events up to the number *indexed*."""
        database.execute(_REMOVE, (session, indexed))

    def is_used(self, database: Database, word: str) -> bool:
        """Return whether a stored event contains the word."""
        return database.execute(_IN_USE, (_quoted(word),)).fetchone() is not None

    def with_word(self, database: Database, word: str, *, kind: str, limit: int) -> list[tuple[str, bytes]]:
        """Return session id and body of the latest events of type *kind* that contain the word."""
        return database.execute(_WITH_WORD, (_quoted(word), kind, limit)).fetchall()

    def find(self, database: Database, query: WordSearch) -> Iterator[int]:
        """Yield the first or last numbers of events that match."""
        expression = _expression(query.terms, query.types)
        joined = "JOIN events AS e ON e.seq = t.seq" if query.condition else ""
        matching, table, condition = "", "events_text AS t", "t.words @@ CAST(? AS tsquery) AND "
        if not _are_common(database, query.terms):
            matching, table, condition = _WITH_RARE, "t", ""
        rows = database.execute(
            f"{matching} SELECT t.seq FROM {table} {joined} "  # noqa: S608  # values are bound
            f"WHERE {condition} t.seq BETWEEN ? AND ? AND {query.condition or 'TRUE'} "
            f"ORDER BY t.seq {'DESC' if query.newest_first else 'ASC'} LIMIT ?",
            (expression, query.first_seq, query.last_seq, *query.values, query.limit),
        )
        yield from (seq for (seq,) in rows)


def _are_common(database: Database, terms: Sequence[str]) -> bool:
    """Return whether all terms are among the most common words, so that walking the events finds enough soon."""
    row = database.execute(_COMMON).fetchone()
    common = set() if row is None or row[0] is None else set(row[0])
    *whole, prefix = terms
    return common.issuperset(whole) and any(word.startswith(prefix) for word in common)


def _vector(words: Iterable[str]) -> list[str]:
    """Return the distinct words as the index holds them."""
    distinct = list(dict.fromkeys(words))
    if len(distinct) <= SHORT_WORDS and max(map(len, distinct), default=0) <= MAXIMUM_WORD_BYTES // 4:
        return distinct
    held: list[str] = []
    remaining = MAXIMUM_VECTOR_BYTES
    for word in dict.fromkeys(map(_cut, distinct)):
        remaining -= len(word.encode()) + 4
        if remaining < 0:
            break
        held.append(word)
    return held


def _cut(word: str) -> str:
    if len(word) * 4 <= MAXIMUM_WORD_BYTES:
        return word
    return word.encode()[:MAXIMUM_WORD_BYTES].decode("utf-8", "ignore")


def _expression(words: Sequence[str], types: Sequence[str]) -> str:
    """Return the `tsquery` of the words, the last one as a prefix, and of the words of the wanted types."""
    *whole, prefix = words
    parts = [*map(_quoted, whole), f"{_quoted(prefix)}:*"]
    if types:
        parts.append(f"({' | '.join(' & '.join(map(_quoted, words_of(name))) for name in types)})")
    return " & ".join(parts)


def _quoted(word: str) -> str:
    return f"'{_cut(word)}'"


def _add(database: Database, statement: str, rows: Iterable[tuple[int, str]]) -> None:
    """Add rows, each given as its number and its parts between spaces, with few statements."""
    numbers: list[str] = []
    lines: list[str] = []
    characters = 0
    for number, parts in rows:
        numbers.append(str(number))
        lines.append(parts)
        characters += len(parts)
        if characters > STATEMENT_CHARACTERS:
            database.execute(statement, (" ".join(numbers), "\n".join(lines)))
            numbers, lines, characters = [], [], 0
    if numbers:
        database.execute(statement, (" ".join(numbers), "\n".join(lines)))


_ADD_TEXT: Final = (
    "INSERT INTO contents_text (id, trigrams) "
    f"SELECT number, CAST(string_to_array(coalesce(parts, ''), ' ') AS integer[]) {_ADDED}"  # a constant
)
_MATCHING: Final = "SELECT id FROM contents_text WHERE trigrams @> CAST(? AS integer[]) ORDER BY id DESC"


class GinContentIndex:
    """The trigrams of texts in the table `contents_text`."""

    is_supported = True

    def add(self, database: Database, texts: Iterable[tuple[int, str]]) -> None:
        """Add texts by number."""
        numbers = _NumberTexts()
        rows = ((number, " ".join(map(numbers.__getitem__, _trigrams(text)))) for number, text in texts)
        _add(database, _ADD_TEXT, rows)

    def remove(self, database: Database, number: int, text: str) -> None:  # noqa: ARG002  # FTS5 needs it
        """Remove a text."""
        database.execute("DELETE FROM contents_text WHERE id = ?", (number,))

    def clear(self, database: Database) -> None:
        """Remove every text."""
        database.execute("DELETE FROM contents_text")

    def candidates(self, database: Database, trigrams: Sequence[str]) -> Iterator[int] | None:
        """Yield the numbers of the texts that contain all trigrams, the latest first."""
        numbers = [_number(trigram) for trigram in trigrams]
        return (number for (number,) in database.execute(_MATCHING, (numbers,)))


def _trigrams(text: str) -> set[str]:
    folded = text.lower()
    return set(map("".join, zip(*(folded[start:] for start in range(TRIGRAM)), strict=False)))


class _NumberTexts(dict[str, str]):
    """The numbers of trigrams as text; texts have most of theirs in common."""

    def __missing__(self, trigram: str) -> str:
        text = self[trigram] = str(_number(trigram))
        return text


def _number(trigram: str) -> int:
    return crc32(trigram.encode()) - 2**31
