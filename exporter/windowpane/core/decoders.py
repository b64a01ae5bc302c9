"""Typed decoding with msgspec: this module does all of it, and has one thread at a time prepare a type.

msgspec caches its description of a type before the description is complete, so a second thread that decodes the
same type for the first time reads null pointers, and the process dies. A prepared type may be used by any thread.
Encoding, and decoding to plain values, prepare nothing.
"""

from __future__ import annotations

from threading import RLock
from typing import Any, Final, TypeVar

import msgspec

T = TypeVar("T")

preparing: Final = RLock()
"""Held while a type is prepared, and by a thread that forks: a child could not complete the preparation."""
_prepared: Final[set[Any]] = set()


def json_decoder(kind: type[T]) -> msgspec.json.Decoder[T]:
    """Return a decoder of JSON to *kind*."""
    with preparing:
        return msgspec.json.Decoder(kind)


def msgpack_decoder(kind: Any) -> msgspec.msgpack.Decoder[Any]:
    """Return a decoder of MessagePack to *kind*."""
    with preparing:
        return msgspec.msgpack.Decoder(kind)


def decode_json(raw: bytes | str, kind: type[T]) -> T:
    """Return the value of type *kind* that *raw* encodes. Raises `msgspec.MsgspecError`."""
    _prepare(kind)
    return msgspec.json.decode(raw, type=kind)


def convert(value: object, kind: type[T]) -> T:
    """Return the plain *value* as *kind*. Raises `msgspec.ValidationError`."""
    _prepare(kind)
    return msgspec.convert(value, kind)


def _prepare(kind: Any) -> None:
    if kind not in _prepared:
        json_decoder(kind)  # msgspec remembers the types, not the decoder
        _prepared.add(kind)
