"""The base of immutable values made on the agent's thread, or for every line of a recording."""

from __future__ import annotations

from dataclasses import Field, field, make_dataclass
from functools import cache
from typing import Any, ClassVar, Final

import msgspec


class _DataclassFields:
    """The fields of a value as `dataclasses` describes them."""

    def __get__(self, _value: object, cls: type[msgspec.Struct]) -> dict[str, Field[Any]]:
        return _dataclass_fields(cls)


class FastDataclass(msgspec.Struct, frozen=True, gc=False):
    """A frozen value that is made several times as fast as a dataclass, and that `dataclasses` treats as one.

    It must not be part of a reference cycle, because the garbage collector does not look at it. Only values made
    on the agent's thread, or for every line of a recording, use this base; all others are dataclasses.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]] = _DataclassFields()  # type: ignore[assignment]


_NO_DEFAULT: Final = msgspec.NODEFAULT


@cache
def _dataclass_fields(cls: type[msgspec.Struct]) -> dict[str, Field[Any]]:
    described = []
    for info in msgspec.structs.fields(cls):
        is_keyword = info.name not in cls.__match_args__
        if info.default_factory is not _NO_DEFAULT:
            own = field(default_factory=info.default_factory, kw_only=is_keyword)
        elif info.default is not _NO_DEFAULT:
            own = field(default=info.default, kw_only=is_keyword)
        else:
            own = field(kw_only=is_keyword)
        described.append((info.name, info.type, own))
    own_fields: dict[str, Field[Any]] = vars(make_dataclass(cls.__name__, described))["__dataclass_fields__"]
    return own_fields
