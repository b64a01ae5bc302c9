"""Secrets in the columns of CSV and similar tables, and of SQL: `user,password,token` before their values.

A header is a line of names with one separator between them. Its rows are the lines below it with as many cells; a
cell in quotation marks may contain separators and line breaks. A line that does not fit is skipped; a few in a
row end the table. The lines may be those of a string in JSON. The columns of an `INSERT` are its header.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from windowpane.core.redaction.encodings import without
from windowpane.core.redaction.names import BREAK, COLUMN_STEMS, SecretName, column_named
from windowpane.core.redaction.shape import Span

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence

    from windowpane.core.redaction.literals import Occurrences

_END: Final = re.compile(r"[\"'`*]{0,3} {0,60}+(?:[,;\t\r\n|│┃║)]|\\{1,4}[nrt])")
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
_ESCAPED: Final = re.compile(r"\\{1,4}(?P<code>[rnt\"])")
_ESCAPED_BREAK: Final = re.compile(r"\\{1,4}n")
_CONTROL: Final = {"r": "\r", "n": "\n", "t": "\t", '"': '"'}
_BEFORE_STRING: Final = re.compile(r".*(?:\\n|[\"'])(?=.)", re.DOTALL)
_INSERT: Final = re.compile(r"insert into\s[^()'\n;]{1,200}\((?P<columns>[^()']{1,4096})\)", re.IGNORECASE)
_VALUES: Final = re.compile(
    rf"[ \t]{{0,8}}+{BREAK}?+\s{{0,40}}+values\s{{0,8}}+{BREAK}?+\s{{0,40}}+(?=\()", re.IGNORECASE
)
_ITEM: Final = re.compile(
    r"[(,]\s{0,8}+[A-Za-z]?(?:'(?P<value>[^'\\]*+(?:(?:''|\\.)[^'\\]*+)*+)'|[^,()']*+)\s{0,8}+(?=[,)])"
)
_NEXT_TUPLE: Final = re.compile(rf"\)\s{{0,8}}+,[ \t]{{0,8}}+{BREAK}?+\s{{0,40}}+(?=\()")
LITERALS: Final = ("insert into",)
_RULES: Final = dict.fromkeys(map(ord, "│┃║"), "|")
"""Vertical lines between the cells of tables that programs draw."""
_AROUND_VALUE: Final = " \"'`*\r"
_MAXIMUM_MISFITS: Final = 3
"""Lines in a row that are not rows of the table, after which it has ended."""


_Head = tuple[int, SecretName]
"""Position and name of a column with secrets."""


class _Header(NamedTuple):
    separator: str
    cells: int
    end: int


def table_spans(text: str, folded: str, occurrences: Occurrences) -> Iterator[Span]:
    """Yield the values in *text* below a name that denotes a secret, by the *occurrences* of literals in it."""
    heads: list[_Head] = []
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
    if not text.isascii():
        text = text.translate(_RULES)
    yield from _inserted_values(text, occurrences.get("insert into", ()), heads)
    yield from _tables(text, heads)


def _tables(text: str, heads: Sequence[_Head]) -> Iterator[Span]:
    """Yield the secrets of the tables whose columns have these *heads*."""
    position = 0
    after = 0
    while position < len(heads):
        line_start = text.rfind("\n", 0, heads[position][0]) + 1
        line_end = text.find("\n", line_start)
        line_end = len(text) if line_end < 0 else line_end
        in_line = []
        while position < len(heads) and heads[position][0] < line_end:
            in_line.append(heads[position])
            position += 1
        if line_start < after:
            continue
        header = _header(text, line_start)
        if header is None:
            yield from _tables_in_string(text, line_start, line_end, in_line)
        else:
            columns = {text.count(header.separator, line_start, head): name for head, name in in_line}
            after = yield from _values(text, header, columns)


def _tables_in_string(text: str, line_start: int, line_end: int, heads: Sequence[_Head]) -> Iterator[Span]:
    """Yield the secrets of tables in this line whose own line breaks are escaped; it is decoded once."""
    after = line_start
    for head, _ in heads:
        if head < after:
            continue
        line_break = _ESCAPED_BREAK.search(text, head, min(line_end, head + _MAXIMUM_LINE))
        if line_break is None:
            after = head + _MAXIMUM_LINE
            continue
        lowest = max(after, head - _MAXIMUM_LINE)
        before = _BEFORE_STRING.match(text, lowest, head)
        start, after = before.end() if before else lowest, line_break.end()
        first = without(_ESCAPED, text, _control, start, after)
        if first is not None and _header(first.text, 0) is not None:
            string = without(_ESCAPED, text, _control, start, line_end)
            if string is not None:
                inside = [(string.decoded(at), name) for at, name in heads if at >= start]
                yield from map(string.original, _tables(string.text, inside))
            return


def _control(escape: re.Match[str]) -> str:
    return _CONTROL[escape["code"]]


def _inserted_values(text: str, inserts: Iterable[int], heads: Sequence[_Head]) -> Iterator[Span]:
    """Yield the secrets in the tuples of SQL's `INSERT` by the names of its columns."""
    after = 0
    for position in inserts:
        insert = _INSERT.match(text, position) if position >= after else None
        values = insert and _VALUES.match(text, insert.end())
        if not insert or not values:
            continue
        start, after = insert.start("columns"), values.end()
        columns = {
            text.count(",", start, head): name for head, name in heads if start <= head < insert.end("columns")
        }
        number = 0
        while columns and (item := _ITEM.match(text, after)) is not None:
            name, value = columns.get(number), item["value"]
            if name is not None and value and " " not in value and name.is_secret(value):
                yield Span(item.start("value"), 1, item.end("value"), name.kind)
            number, after = number + 1, item.end()
            if (following := _NEXT_TUPLE.match(text, after)) is not None:
                number, after = 0, following.end()


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
