"""SQLite's indexes for search: FTS5 tables without a copy of what they index.

The cost of a search grows with what it finds, not with what is stored. The index yields the events of a whole
word in order and stops at the limit. Of a prefix it collects all events before it yields the first, so the words
with that prefix are looked up, and if they are few they are searched for instead, merged as they are read.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from functools import cached_property
from typing import Final

from windowpane.store.database import Database, WordSearch
from windowpane.store.search.events import text_of, words_of

PREFIX_WORDS: Final = 64
"""Words searched for instead of a prefix; with more, the index collects the events of the prefix itself."""

_INSERT: Final = "INSERT INTO events_text (rowid, text) VALUES (?, ?)"
_REMOVE: Final = "INSERT INTO events_text (events_text, rowid, text) VALUES ('delete', ?, ?)"
_OF_SESSION: Final = "SELECT seq, body FROM events WHERE session = ? AND seq <= ? ORDER BY seq"
_IN_USE: Final = """
    SELECT 1 FROM events_text JOIN events AS e ON e.seq = events_text.rowid WHERE events_text MATCH ? LIMIT 1"""
_WITH_WORD: Final = """
    SELECT s.session_id, e.body FROM events_text JOIN events AS e ON e.seq = events_text.rowid
    JOIN sessions AS s ON s.key = e.session AND s.current = 1
    WHERE events_text MATCH ? AND +e.type = (SELECT id FROM event_types WHERE name = ?)
    ORDER BY events_text.rowid DESC LIMIT ?"""
_VOCABULARY: Final = (
    "CREATE VIRTUAL TABLE IF NOT EXISTS temp.events_words USING fts5vocab (main, events_text, instance)"
)
_NEXT_WORD: Final = "SELECT term FROM temp.events_words WHERE term >= ? LIMIT 1"


class Fts5EventIndex:
    """The words of events in the table `events_text`."""

    def add(self, database: Database, texts: Iterable[tuple[int, str]]) -> None:
        """Add events by number with their searchable text."""
        database.executemany(_INSERT, texts)

    def remove(self, database: Database, session: int, *, indexed: int) -> None:
        """Remove a session's events up to the number *indexed*; FTS5 needs their texts again."""
        events = database.execute(_OF_SESSION, (session, indexed)).fetchall()
        database.executemany(_REMOVE, ((seq, text_of(body)) for seq, body in events))

    def is_used(self, database: Database, word: str) -> bool:
        """Return whether a stored event contains the word."""
        return database.execute(_IN_USE, (_quoted(word),)).fetchone() is not None

    def with_word(self, database: Database, word: str, *, kind: str, limit: int) -> list[tuple[str, bytes]]:
        """Return session id and body of the latest events of type *kind* that contain the word."""
        return database.execute(_WITH_WORD, (_quoted(word), kind, limit)).fetchall()

    def find(self, database: Database, query: WordSearch) -> Iterator[int]:
        """Yield the first or last numbers of events that match."""
        match = _expression(database, query.terms, query.types)
        if match is None:
            return
        joined = "JOIN events AS e ON e.seq = events_text.rowid" if query.condition else ""
        rows = database.execute(
            f"SELECT events_text.rowid FROM events_text {joined} "  # noqa: S608  # values are bound
            f"WHERE events_text MATCH ? AND events_text.rowid BETWEEN ? AND ? AND {query.condition or 'TRUE'} "
            f"ORDER BY events_text.rowid {'DESC' if query.newest_first else 'ASC'} LIMIT ?",
            (match, query.first_seq, query.last_seq, *query.values, query.limit),
        )
        yield from (seq for (seq,) in rows)


def _expression(database: Database, words: Sequence[str], types: Sequence[str]) -> str | None:
    """Return the index's match expression; None where no indexed event can match.

    An event's type is part of its text, so the words of the wanted types narrow the search before any is read.
    """
    *whole, prefix = words
    parts = [_quoted(word) for word in whole]
    completions = _completions(database, prefix)
    if completions is None:
        parts.append(f"{_quoted(prefix)}*")
    elif completions:
        parts.append(_any(_quoted(word) for word in completions))
    else:
        return None
    if types:
        parts.append(_any(_all(_quoted(word) for word in words_of(name)) for name in types))
    return _all(parts)


def _completions(database: Database, prefix: str) -> list[str] | None:
    """Return the indexed words with a prefix; None for more than `PREFIX_WORDS` and for a prefix beyond ASCII."""
    if not prefix.isascii():
        return None
    database.execute(_VOCABULARY)
    completions: list[str] = []
    start = prefix
    while (row := next(iter(database.execute(_NEXT_WORD, (start,)).fetchall()), None)) is not None:
        word = str(row[0])
        if not word.startswith(prefix):
            break
        if len(completions) == PREFIX_WORDS:
            return None
        completions.append(word)
        start = f"{word}\x01"  # behind every event of the word, before any longer one
    return completions


def _quoted(word: str) -> str:
    return f'"{word}"'


def _any(parts: Iterable[str]) -> str:
    return f"({' OR '.join(parts)})"


def _all(parts: Iterable[str]) -> str:
    return f"({' AND '.join(parts)})"


_CREATE_TRIGRAMS: Final = (
    "CREATE VIRTUAL TABLE IF NOT EXISTS contents_text USING fts5 "
    "(text, content = '', columnsize = 0, detail = none, tokenize = 'trigram')"
)
_ADD_TEXT: Final = "INSERT INTO contents_text (rowid, text) VALUES (?, ?)"
_REMOVE_TEXT: Final = "INSERT INTO contents_text (contents_text, rowid, text) VALUES ('delete', ?, ?)"
_REMOVE_ALL: Final = "INSERT INTO contents_text (contents_text) VALUES ('delete-all')"
_MATCHING: Final = "SELECT rowid FROM contents_text WHERE contents_text MATCH ? ORDER BY rowid DESC"


class Fts5ContentIndex:
    """The trigrams of texts in the table `contents_text`, which is created with its first text."""

    @cached_property
    def is_supported(self) -> bool:
        """True where this interpreter's SQLite has FTS5 with the trigram tokenizer (3.34)."""
        with closing(sqlite3.connect(":memory:")) as connection:
            try:
                connection.execute(_CREATE_TRIGRAMS)
            except sqlite3.OperationalError:
                return False
        return True

    def add(self, database: Database, texts: Iterable[tuple[int, str]]) -> None:
        """Add texts by number."""
        database.execute(_CREATE_TRIGRAMS)
        database.executemany(_ADD_TEXT, texts)

    def remove(self, database: Database, number: int, text: str) -> None:
        """Remove a text, which must be the one that was added."""
        database.execute(_REMOVE_TEXT, (number, text))

    def clear(self, database: Database) -> None:
        """Remove every text."""
        if _has_trigrams(database):
            database.execute(_REMOVE_ALL)

    def candidates(self, database: Database, trigrams: Sequence[str]) -> Iterator[int] | None:
        """Yield the numbers of the texts that contain all trigrams, the latest first; None without an index."""
        if not self.is_supported or not _has_trigrams(database):
            return None
        quoted = ('"' + trigram.replace('"', '""') + '"' for trigram in trigrams)
        return (number for (number,) in database.execute(_MATCHING, (" AND ".join(quoted),)))


def _has_trigrams(database: Database) -> bool:
    return database.execute(database.dialect.table_exists, ("contents_text",)).fetchone() is not None
