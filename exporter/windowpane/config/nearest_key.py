"""The key that a misspelled one was probably meant to be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import get_args, get_origin

from pydantic import BaseModel


def nearest_key(settings: type[BaseModel], key: Sequence[str | int]) -> str:
    """Return the dotted key that is spelled most like *key*, in its section, else anywhere; empty if none is."""
    *path, name = key
    keys = _section(settings, path).model_fields
    if close := get_close_matches(str(name), keys, n=1):
        return ".".join(map(str, (*path, *close)))
    return next((dotted for dotted in _all_keys(settings) if dotted.rpartition(".")[2] == name), "")


def _section(settings: type[BaseModel], path: Sequence[str | int]) -> type[BaseModel]:
    parts = iter(path)
    for part in parts:
        annotation = settings.model_fields[str(part)].annotation
        settings = next(_sections(annotation))
        if {get_origin(kind) for kind in (annotation, *get_args(annotation))} & {dict, tuple}:
            next(parts, None)  # the name or number of an element
    return settings


def _sections(annotation: object) -> Iterator[type[BaseModel]]:
    """Yield the sections in a field's type: itself, an optional one, or those of a list."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _sections(argument)


def _all_keys(settings: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, field in settings.model_fields.items():
        yield f"{prefix}{name}"
        for section in _sections(field.annotation):
            yield from _all_keys(section, f"{prefix}{name}.")
