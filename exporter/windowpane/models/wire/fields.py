"""Fields of a provider's message, which may be a dictionary or an object of a client."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

_CAPITAL: Final = re.compile(r"[A-Z]")


def field_of(value: object, name: str) -> Any:
    """Return a field of a dictionary or of an object; None where it has no such field."""
    if isinstance(value, dict) or isinstance(value, Mapping):  # noqa: SIM101  # the check of a dict is much faster
        return value.get(name)
    return getattr(value, name, None)


def member_of(value: object, name: str) -> Any:
    """Return a field by its name in camel case, or in snake case where it is written so."""
    field = field_of(value, name)
    return field_of(value, _snake(name)) if field is None else field


@cache
def _snake(name: str) -> str:
    return _CAPITAL.sub(lambda capital: f"_{capital[0].lower()}", name)


def items_of(value: object, name: str) -> Sequence[Any]:
    """Return the items of a field that holds a list; none where it holds anything else, such as a text."""
    items = field_of(value, name)
    return items if isinstance(items, list | tuple) else ()


def name_of(value: object, default: str) -> str:
    """Return the role or kind of something, which may be a member of an enumeration of texts."""
    return str.__str__(value) if isinstance(value, str) and value else default


def parts_of(content: Any) -> Sequence[Any]:
    """Return the parts of a message's content, which may be one text."""
    if content is None:
        return ()
    return content if isinstance(content, list | tuple) else (content,)


def texts_of(content: Any) -> Iterator[str]:
    """Yield the texts of a message's content; parts without text are skipped."""
    for part in parts_of(content):
        text = part if isinstance(part, str) else field_of(part, "text")
        if isinstance(text, str):
            yield text


def as_dict(value: object) -> dict[str, Any]:
    """Return a provider's block or message as a dictionary."""
    if isinstance(value, Mapping):
        return dict(value)
    dump = getattr(value, "model_dump", None)
    return dict(dump(exclude_none=True) if callable(dump) else vars(value))


def copy_structure(value: Any) -> Any:
    """Return a copy of a message that shares its texts, so that later edits in place are noticed."""
    if isinstance(value, dict):
        return {key: copy_structure(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [copy_structure(item) for item in value]
    return value


def json_text(value: object) -> str:
    """Return a value as JSON, objects of the clients too."""
    return json.dumps(value, ensure_ascii=False, default=_plain)


def _plain(value: object) -> object:
    dump = getattr(value, "model_dump", None)
    return dump(exclude_none=True) if callable(dump) else str(value)


def canonical_json(text: str | None) -> str | None:
    """Return JSON with sorted keys and no spaces; other text unchanged."""
    try:
        return json.dumps(json.loads(text or "{}"), ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    except (ValueError, RecursionError):
        return text
