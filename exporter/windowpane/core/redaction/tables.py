"""Secrets in the columns of CSV and similar tables: `user,password,token` above their values.

A header is a line of names with one separator between them. Its rows are the lines below it with as many cells; a
cell in quotation marks may contain separators and line breaks. A line that does not fit is skipped; a few in a
row end the table.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from windowpane.core.redaction.names import COLUMN_STEMS, SecretName, column_named
from windowpane.core.redaction.shape import Span

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping

    from windowpane.core.redaction.literals import Occurrences

_END: Final = re.compile(r"[\"'`*]{0,3} {0,60}+[,;\t\r\n|]")
"""Characters behind the head of a column."""
_MAXIMUM_LINE: Final = 4_096
_NAME: Final = r" {0,60}+[\"'`*]{0,3}+[A-Za-z_#][\w .-]{0,80}+[\"'`*]{0,3}+ {0,60}+"
"""Possessive: a blank behind a name must not be tried as a part of it as well, in each of 60 columns."""
_HEADERS: Final = tuple(
    (mark, re.compile(rf"\|?{_NAME}(?:{re.escape(mark)}{_NAME}){{1,60}}+\|?")) for mark in (",", ";", "\t", "|")
)
_CELLS: Final = {
    mark: re.compile(rf'(?: ?"[^"]*+"(?:"[^"]*+")*)?+[^{mark}\n]*+') for mark in (",", ";", "\t", "|")
}
"""A cell by its separator; two quotation marks within a cell in quotation marks are one."""
_AROUND_VALUE: Final = " \"'`*\r"
_MAXIMUM_MISFITS: Final = 3
"""Lines in a row that are not rows of the table, after which it has ended."""


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
                if _END.match(text, start + size):
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
    start = after = header.end
    misfits = 0
    while start < len(text) and misfits < _MAXIMUM_MISFITS:
        row = _row(text, start, header.separator)
        start = row[-1][1] + 1
        if len(row) != header.cells:
            if len(row) == 1 and not text[row[0][0] : row[0][1]].strip():
                break
            misfits += 1
            continue
        misfits, after = 0, start
        for number, name in columns.items():
            value = text[slice(*row[number])].strip(_AROUND_VALUE)
            if value and " " not in value and name.is_secret(value):
                at = text.index(value, row[number][0])
                yield Span(at, 1, at + len(value), name.kind)
    return min(after, len(text))


def _row(text: str, start: int, separator: str) -> list[tuple[int, int]]:
    """Return where the cells of the row at *start* start and end; a row that is too long is one cell."""
    line_end = text.find("\n", start)
    line_end = len(text) if line_end < 0 else line_end
    if line_end - start > _MAXIMUM_LINE:
        return [(start, line_end)]
    pattern, cells, position = _CELLS[separator], [], start
    limit = min(len(text), start + _MAXIMUM_LINE)
    while (cell := pattern.match(text, position, limit)) is not None:
        cells.append(cell.span())
        position = cell.end() + 1
        if text[cell.end() : position] != separator:
            break
    return cells
