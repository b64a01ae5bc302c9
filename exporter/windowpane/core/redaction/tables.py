"""Secrets in the columns of CSV and similar tables: `user,password,token` above their values.

A header is a line of names with one separator between them. Its rows are the lines below it with as many cells.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from windowpane.core.redaction.names import COLUMN_STEMS, SecretName, column_named
from windowpane.core.redaction.shape import Span

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping

    from windowpane.core.redaction.literals import Occurrences

_ENDS: Final = (",", ";", "\t", "\n", "\r\n", '",', '";', '"\t', '"\n', '"\r\n')
"""Characters behind the head of a column."""
_MAXIMUM_LINE: Final = 4_096
_NAME: Final = r" ?[\"']?[A-Za-z_][\w .-]{0,40}[\"']? ?"
_HEADERS: Final = tuple((mark, re.compile(f"{_NAME}(?:{mark}{_NAME}){{1,60}}")) for mark in (",", ";", "\t"))
_AROUND_VALUE: Final = " \"'\r"


class _Header(NamedTuple):
    separator: str
    cells: int
    end: int


def table_spans(text: str, folded: str, occurrences: Occurrences) -> Iterator[Span]:
    """Yield the values in *text* below a name that denotes a secret, by the *occurrences* of literals in it."""
    heads: list[tuple[int, SecretName]] = []
    for stem, positions in occurrences.items():
        if stem in COLUMN_STEMS:
            size = len(stem)
            for start in positions:
                if text.startswith(_ENDS, start + size):
                    name = column_named(stem, text, folded, start)
                    if name is not None:
                        heads.append((start, name))
    if not heads:
        return
    heads.sort()
    position = 0
    after = 0
    while position < len(heads):
        line_start = text.rfind("\n", 0, heads[position][0]) + 1
        header = _header(text, line_start) if line_start >= after else None
        line_end = text.find("\n", line_start)
        columns: dict[int, SecretName] = {}
        while position < len(heads) and (line_end < 0 or heads[position][0] < line_end):
            start, name = heads[position]
            position += 1
            if header is not None:
                columns[text.count(header.separator, line_start, start)] = name
        if header is not None:
            after = yield from _values(text, header, columns)


def _header(text: str, start: int) -> _Header | None:
    """Return the header in the line at *start*, if it is one and another line follows."""
    end = text.find("\n", start, start + _MAXIMUM_LINE)
    if end < 0:  # a long line, or no row below it
        return None
    last = end - 1 if text.startswith("\r", end - 1) else end
    for mark, pattern in _HEADERS:
        if pattern.fullmatch(text, start, last):
            return _Header(mark, text.count(mark, start, last) + 1, end + 1)
    return None


def _values(text: str, header: _Header, columns: Mapping[int, SecretName]) -> Generator[Span, None, int]:
    """Yield the secrets in the *columns* of the rows below the header; return where the last row ends."""
    start = header.end
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        cells = text[start:end].split(header.separator) if end - start <= _MAXIMUM_LINE else ()
        if len(cells) != header.cells:
            break
        first = start
        for number, cell in enumerate(cells):
            name, value = columns.get(number), cell.strip(_AROUND_VALUE)
            if name is not None and value and " " not in value and name.is_secret(value):
                at = first + cell.index(value)
                yield Span(at, 1, at + len(value), name.kind)
            first += len(cell) + 1
        start = end + 1
    return start
