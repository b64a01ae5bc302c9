"""The store's statements in psycopg's form, and in the forms that carry out many rows at once.

An INSERT can be a COPY. An INSERT or UPDATE whose values are single placeholders can take an array of values for
each: the server then parses, plans and answers one statement, however many rows there are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import Enum
from functools import lru_cache
from typing import Any, Final, NamedTuple

_QUOTED: Final = r"'(?:[^']|'')*'"
_NAME: Final = r'"\w+"|\b\w+'
_PARTS: Final = re.compile(rf"({_QUOTED}|\"(?:[^\"]|\"\")*\")|(\?)|(%)")
_INSERT: Final = re.compile(
    r"\s*INSERT INTO (?P<table>\w+) \((?P<columns>[^)]*)\)\s+VALUES \((?:\?, )*\?\)"
    r"(?P<conflict>\s+ON CONFLICT [^?]*)?\s*\Z"
)
_UPSERT: Final = re.compile(r"\s+ON CONFLICT \((?P<key>[^)]*)\) DO UPDATE ")
_COMPARED: Final = rf"(?:{_NAME}) [=<] \?"
_UPDATE: Final = re.compile(r"\s*UPDATE (?P<table>\w+) SET (?P<changes>.*) WHERE (?P<conditions>.*)", re.DOTALL)
_CONDITIONS: Final = re.compile(rf"{_COMPARED}(?: AND {_COMPARED})*\s*")
_ASSIGNED: Final = re.compile(rf"{_QUOTED}|(?P<column>{_NAME}) (?P<comparison>[=<]) |(?P<placeholder>\?)")


@lru_cache(maxsize=1_000)
def translated(sql: str) -> bytes:
    """Return a statement with the placeholders of psycopg."""
    return _PARTS.sub(_translated_part, sql).encode()


def _translated_part(match: re.Match[str]) -> str:
    quoted, placeholder, _percent = match.groups()
    if quoted:
        return str(quoted).replace("%", "%%")
    return "%s" if placeholder else "%%"


class Conflicts(Enum):
    """The treatment of rows whose keys exist."""

    FAIL = "fail"
    SKIP = "skip"
    UPDATE = "update"


class ManyRows(NamedTuple):
    """A statement that can be carried out for many rows at once."""

    table: str
    columns: str
    """The column that each placeholder is assigned to or compared with, which gives its type."""
    statement: bytes
    """The statement with an array for each placeholder."""
    key: tuple[int, ...] | None
    """Placeholders that no two rows of one run may have the same values for; None where any rows may."""
    conflicts: Conflicts | None
    """For an INSERT."""

    def runs(self, rows: Sequence[Sequence[Any]]) -> Iterator[Sequence[Sequence[Any]]]:
        """Yield the rows in as few runs as have distinct keys; rows with the same key stay in order."""
        if self.key is None:
            yield rows
            return
        while rows:
            first: dict[tuple[Any, ...], int] = {}
            keys = [tuple(row[index] for index in self.key) for row in rows]
            is_first = [first.setdefault(key, number) == number for number, key in enumerate(keys)]
            yield [row for row, takes_part in zip(rows, is_first, strict=True) if takes_part]
            rows = [row for row, takes_part in zip(rows, is_first, strict=True) if not takes_part]


@lru_cache(maxsize=200)
def for_many_rows(sql: str) -> ManyRows | None:
    """Return the form of *sql* for many rows at once; None for a statement that has none."""
    if (insert := _INSERT.match(sql)) is not None:
        return _insert(insert)
    if (update := _UPDATE.match(sql)) is not None and _CONDITIONS.fullmatch(update["conditions"]):
        return _update(update)
    return None


def _insert(match: re.Match[str]) -> ManyRows:
    table, columns, conflict = match["table"], match["columns"], match["conflict"] or ""
    names = columns.split(", ")
    upsert = _UPSERT.match(conflict)
    key = None if upsert is None else tuple(map(names.index, upsert["key"].split(", ")))
    statement = f"INSERT INTO {table} ({columns}) SELECT * FROM {_arrays(len(names))}{conflict}"  # noqa: S608
    conflicts = Conflicts.UPDATE if upsert else Conflicts.SKIP if conflict else Conflicts.FAIL
    return ManyRows(table, columns, statement.encode(), key, conflicts)


def _update(match: re.Match[str]) -> ManyRows | None:
    columns: list[str] = []
    comparisons: list[str] = []
    column = comparison = ""

    def numbered(part: re.Match[str]) -> str:
        nonlocal column, comparison
        column, comparison = part["column"] or column, part["comparison"] or comparison
        if not part["placeholder"]:
            return part[0]
        columns.append(column)
        comparisons.append(comparison)
        return f"new.v{len(columns)}"

    changes = _ASSIGNED.sub(numbered, match["changes"])
    changed = len(columns)
    conditions = _ASSIGNED.sub(numbered, match["conditions"])
    names = ", ".join(f"v{number + 1}" for number in range(len(columns)))
    statement = (
        f"UPDATE {match['table']} SET {changes} FROM {_arrays(len(columns))} AS new ({names}) "  # noqa: S608
        f"WHERE {conditions}"
    )
    key = tuple(index for index in range(changed, len(columns)) if comparisons[index] == "=")
    return ManyRows(match["table"], ", ".join(columns), statement.encode(), key, conflicts=None)


def _arrays(count: int) -> str:
    return f"unnest({', '.join(['%b'] * count)})"
