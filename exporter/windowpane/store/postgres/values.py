"""Values on their way to PostgreSQL and back, as SQLite takes and returns them, and columns as arrays."""

from __future__ import annotations

import struct
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import Any, ClassVar, Final

from psycopg.abc import AdaptContext
from psycopg.adapt import Buffer, Dumper, Loader
from psycopg.pq import Format
from psycopg.types.numeric import Int8BinaryDumper
from psycopg.types.string import StrBinaryDumper, StrDumper, StrDumperUnknown


class _Number(Loader):
    """Sums of integers are integers, as in SQLite."""

    def load(self, data: Buffer) -> int | float:
        text = bytes(data)
        return int(text) if text.lstrip(b"-").isdigit() else float(text)


class _Truth(Loader):
    """Comparisons are 0 and 1, as in SQLite."""

    def load(self, data: Buffer) -> int:
        return int(bytes(data) == b"t")


class _IntDumper(Int8BinaryDumper):
    """Every integer has one type, so that a statement is prepared once; truth values are integers, too."""

    def dump(self, obj: Any) -> Buffer | None:
        try:
            return super().dump(int(obj))
        except struct.error as error:  # as SQLite's driver reports it: no later attempt would help
            raise OverflowError("a number of more than 64 bits cannot be stored") from error


def _storable(text: str) -> str:
    """Return a text without NUL, which PostgreSQL cannot store."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}") if "\0" in text else text


class _StrDumper(StrDumper):
    def dump(self, obj: str) -> Buffer | None:
        return super().dump(_storable(obj))


class _StrBinaryDumper(StrBinaryDumper):
    def dump(self, obj: str) -> Buffer | None:
        return super().dump(_storable(obj))


class _StrDumperUnknown(StrDumperUnknown):
    def dump(self, obj: str) -> Buffer | None:
        return super().dump(_storable(obj))


# -- arrays ---------------------------------------------------------------------------------------------------

_HEADER: Final = struct.Struct(">iiIii")
"""Dimensions, presence of NULL, type of the elements, their number, index of the first."""
_LENGTH: Final = struct.Struct(">i").pack
_NULL: Final = _LENGTH(-1)
_INTEGER: Final = struct.Struct(">iq").pack
_FLOAT: Final = struct.Struct(">id").pack
_NUMBER_BYTES: Final = 8


class Column:
    """The values of one column in many rows, passed as one array."""

    __slots__ = ("values",)

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = values


class Integers(Column):
    """An array of integers."""


class Floats(Column):
    """An array of floating-point numbers."""


class Texts(Column):
    """An array of texts."""


class Bytes(Column):
    """An array of byte strings."""


class _ColumnDumper(Dumper):
    """Dumps an array in the binary format, which psycopg's own dumper does several times slower."""

    format = Format.BINARY
    element_oid: ClassVar[int]

    def dump(self, obj: Column) -> Buffer | None:
        header = _HEADER.pack(1, 1, self.element_oid, len(obj.values), 1)
        return header + b"".join(self.elements(obj.values))

    @abstractmethod
    def elements(self, values: Sequence[Any]) -> Iterable[bytes]:
        """Return each value's bytes after their length."""


class _IntegersDumper(_ColumnDumper):
    oid, element_oid = 1016, 20

    def elements(self, values: Sequence[Any]) -> Iterable[bytes]:
        try:
            return list(_numbers(_INTEGER, values))
        except struct.error:  # not an integer, or one of more than 64 bits
            return _strings([None if value is None else _IntDumper(int).dump(value) for value in values])


class _FloatsDumper(_ColumnDumper):
    oid, element_oid = 1022, 701

    def elements(self, values: Sequence[Any]) -> Iterable[bytes]:
        return _numbers(_FLOAT, values)


class _TextsDumper(_ColumnDumper):
    oid, element_oid = 1009, 25

    def elements(self, values: Sequence[Any]) -> Iterable[bytes]:
        return _strings([None if value is None else _storable(value).encode() for value in values])


class _BytesDumper(_ColumnDumper):
    oid, element_oid = 1001, 17

    def elements(self, values: Sequence[Any]) -> Iterable[bytes]:
        return _strings(values)


def _numbers(pack: Callable[[int, Any], bytes], values: Sequence[Any]) -> Iterable[bytes]:
    if None in values:
        return (_NULL if value is None else pack(_NUMBER_BYTES, value) for value in values)
    return map(pack, repeat(_NUMBER_BYTES), values)


def _strings(values: Sequence[Buffer | None]) -> Iterable[bytes]:
    return (_NULL if value is None else _LENGTH(len(value)) + bytes(value) for value in values)


_COLUMNS: Final[dict[type[Column], type[_ColumnDumper]]] = {
    Integers: _IntegersDumper, Floats: _FloatsDumper, Texts: _TextsDumper, Bytes: _BytesDumper,
}  # fmt: skip
ARRAYS: Final = {dumper.element_oid: column for column, dumper in _COLUMNS.items()}
"""The array for each type of element, by its number in PostgreSQL's catalog."""


def adapt(context: AdaptContext) -> None:
    """Let values go in and come out as they do with SQLite."""
    adapters = context.adapters
    adapters.register_loader("numeric", _Number)
    adapters.register_loader("bool", _Truth)
    adapters.register_dumper(int, _IntDumper)
    adapters.register_dumper(bool, _IntDumper)
    for dumper in (_StrBinaryDumper, _StrDumper, _StrDumperUnknown):
        adapters.register_dumper(str, dumper)
    for column, array in _COLUMNS.items():
        adapters.register_dumper(column, array)
