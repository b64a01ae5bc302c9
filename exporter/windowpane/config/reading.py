"""Sections from nested mappings: each value becomes what its key expects, and all problems are found at once."""

from __future__ import annotations

import operator
import os
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Final, Generic, NamedTuple, TypeVar, get_args, get_origin

import msgspec
from msgspec.structs import FieldInfo

from windowpane.config.paths import named_store
from windowpane.config.section import Document, KeyPath, Secret, Section
from windowpane.core.store_names import EXPECTED_URL, StoreUrl
from windowpane.exceptions import ConfigurationError

AnySection = TypeVar("AnySection", bound=Section)

UNKNOWN: Final = "unknown key"
_FROM_TEXT: Final[dict[Any, Callable[[str], object]]] = {
    Path: Path, Secret: Secret, Path | StoreUrl: partial(named_store, key="path")
}  # fmt: skip
_EXPECTED: Final[dict[Any, str]] = {
    bool: "a valid boolean", int: "a valid integer", float: "a valid number", str: "a valid string",
    Secret: "a valid string", Path: "a path", Path | StoreUrl: EXPECTED_URL,
}  # fmt: skip
_BOUNDS: Final[dict[str, tuple[str, Callable[[Any, Any], object]]]] = {
    "gt": ("greater than", operator.gt),
    "ge": ("greater than or equal to", operator.ge),
    "le": ("less than or equal to", operator.le),
    "min_length": ("a length of at least", lambda value, length: len(value) >= length),
    "pattern": ("a text that matches", lambda value, pattern: re.fullmatch(pattern, value)),
}
_BOOLEANS: Final = dict.fromkeys(("y", "yes", "on", "t"), True) | dict.fromkeys(("n", "no", "off", "f"), False)
"""Texts that are true or false beside `true`, `false`, `1` and `0`."""


class Problem(NamedTuple):
    """An invalid value or key. Text that was given is not repeated, it may be a secret."""

    key: KeyPath
    text: str
    expected: str = ""


class Reading(Generic[AnySection]):
    """A document as a section, and the problems that were found in it."""

    def __init__(self, kind: type[AnySection], document: Document) -> None:
        self.problems: list[Problem] = []
        self._root = kind
        self.section: AnySection | None = self._value(kind, document, ())
        """None if there are problems."""

    def _value(self, kind: Any, given: object, key: KeyPath) -> Any:
        kind, *checks = get_args(kind) if get_origin(kind) is Annotated else (kind,)
        earlier = len(self.problems)
        try:
            value = self._converted(kind, given, key)
            for check in checks if len(self.problems) == earlier else ():
                if isinstance(check, msgspec.Meta):
                    _check_bounds(value, check, given)
                else:
                    check(value)
        except ValueError as error:
            self.problems.append(_problem(key, error))
            return None
        return value

    def _converted(self, kind: Any, given: object, key: KeyPath) -> Any:
        inner = get_args(kind)
        if isinstance(kind, type) and issubclass(kind, Section):
            return self._section(kind, given, key)
        if NoneType in inner:
            return None if given is None else self._value(inner[0], given, key)
        if get_origin(kind) is tuple:
            if isinstance(given, str) and inner[0] is Path:
                given = list(filter(None, given.split(os.pathsep)))
            if not isinstance(given, list | tuple | set | frozenset):
                raise _invalid("a list")
            return tuple(self._value(inner[0], one, (*key, index)) for index, one in enumerate(given))
        if get_origin(kind) is dict:
            return {
                self._value(inner[0], name, (*key, name)): self._value(inner[1], value, (*key, name))
                for name, value in _mapping(given).items()
            }
        return _single(kind, given)

    def _section(self, kind: type[Section], given: object, key: KeyPath) -> Section | None:
        # A section in which every line is commented out is None.
        document: Mapping[Any, Any] = kind.completed({} if given is None else _mapping(given))
        fields, earlier, values = fields_of(kind), len(self.problems), {}
        for name, field in fields.items():
            if name in document:
                values[name] = self._value(field.type, document[name], (*key, name))
            elif field.required:
                self.problems.append(Problem((*key, name), "missing", "a value"))
        for name in document:
            if not isinstance(name, str):
                self.problems.append(Problem((*key, name), "invalid", "a name as key"))
            elif name not in fields:
                self.problems.append(Problem((*key, name), UNKNOWN, self._nearest(kind, key, name)))
        if len(self.problems) > earlier:
            return None
        section = kind(**values)
        msgspec.structs.force_setattr(section, "given", frozenset(values))
        section._check()
        return section

    def _nearest(self, kind: type[Section], key: KeyPath, name: str) -> str:
        """Return the dotted key that is spelled most like *name*, in its section, else the same one elsewhere."""
        from difflib import get_close_matches

        if close := get_close_matches(name, fields_of(kind), n=1):
            return ".".join(map(str, (*key, *close)))
        same = (dotted for dotted in _all_keys(self._root) if dotted.rpartition(".")[2] == name)
        return next(same, "a key of this section")


@cache
def fields_of(kind: type[Section]) -> Mapping[str, FieldInfo]:
    """Return the keys of a section, with their types."""
    return {field.name: field for field in msgspec.structs.fields(kind)}


def _all_keys(kind: type[Section], prefix: str = "") -> Iterator[str]:
    for name, field in fields_of(kind).items():
        yield f"{prefix}{name}"
        for section in _sections(field.type):
            yield from _all_keys(section, f"{prefix}{name}.")


def _sections(kind: object) -> Iterator[type[Section]]:
    """Yield the sections in the type of a key: itself, an optional one, or those of a list."""
    if isinstance(kind, type) and issubclass(kind, Section):
        yield kind
    for inner in get_args(kind):
        yield from _sections(inner)


def _problem(key: KeyPath, error: ValueError) -> Problem:
    if isinstance(error, ConfigurationError) and ".".join(map(str, key)).endswith(error.path):
        return Problem(key, error.problem, error.expected)
    return Problem(key, str(error))


def _invalid(expected: str) -> ConfigurationError:
    return ConfigurationError("", "invalid", expected=expected)


def _mapping(given: object) -> dict[Any, Any]:
    if not isinstance(given, Mapping):
        raise _invalid("a mapping")
    return dict(given)


def _single(kind: Any, given: object) -> object:
    """Return *given* as a text, number, boolean or choice, or as what is made of a text."""
    if kind in _FROM_TEXT:
        if isinstance(given, str):
            return _FROM_TEXT[kind](given)
        if isinstance(given, kind):
            return given
        raise _invalid(_EXPECTED[kind])
    if isinstance(given, bool) and kind in (int, float):  # YAML reads `yes` and `on` as true
        raise ValueError(f"{str(given).lower()} is not a number")
    if isinstance(given, str) and kind in (bool, int, float):
        text = given.strip().lower().replace("_", "")
        given = _BOOLEANS.get(text, text) if kind is bool else text
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError:
        raise _invalid(_EXPECTED.get(kind) or f"one of {', '.join(map(repr, get_args(kind)))}") from None


def _check_bounds(value: Any, bounds: msgspec.Meta, given: object) -> None:
    for name, (description, holds) in _BOUNDS.items():
        bound = getattr(bounds, name)
        if bound is not None and not holds(value, bound):
            problem = f"{given} is out of range" if isinstance(value, int | float) else "invalid"
            raise ConfigurationError("", problem, expected=f"{description} {bound}")
