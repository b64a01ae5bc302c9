"""Base of all sections of the configuration, and the types of their numbers, addresses and secrets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Self, dataclass_transform
from urllib.parse import urlsplit

from msgspec import Meta, Struct, field, structs

from windowpane.core.limits import MAXIMUM_TOKENS

Document = dict[str, Any]
KeyPath = tuple[str | int, ...]

Ratio = Annotated[float, Meta(ge=0, le=1)]
Share = Annotated[float, Meta(gt=0, le=1)]
Positive = Annotated[float, Meta(gt=0)]
Count = Annotated[int, Meta(ge=1)]
Tokens = Annotated[int, Meta(ge=1, le=MAXIMUM_TOKENS)]


def _http_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # an invalid port or IPv6 address
        is_usable = False
    if not is_usable or any(character.isspace() for character in url):
        raise ValueError("must be a URL that starts with http:// or https:// and names a host")
    if "@" in parts.netloc:  # it would be shown in messages and logs
        raise ValueError("must not hold a user or password; credentials have separate keys")


HttpUrl = Annotated[str, _http_url]


class Secret:
    """A text that is not shown."""

    def __init__(self, value: str) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"Secret({'***' if self.value else ''!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other.value == self.value

    def __hash__(self) -> int:
        return hash(self.value)


def _not_empty(secret: Secret) -> None:
    if not secret.value:
        raise ValueError("must not be empty")


GivenSecret = Annotated[Secret, _not_empty]


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Section(Struct, frozen=True, dict=True):
    """Base of all sections: immutable values under their keys.

    `windowpane.config.reading` makes one of a mapping. In the type of a key, `Meta` bounds its value, and a
    function raises `ValueError` about it.
    """

    given: ClassVar[frozenset[str]] = frozenset()
    """Keys that any layer set, even with the default value."""

    @classmethod
    def completed(cls, given: Document) -> Document:
        """Return the mapping that a section is made of, where one key decides about others."""
        return given

    def _check(self) -> None:
        """Raise `ValueError` where valid values contradict each other."""

    def replaced(self, **changes: Any) -> Self:
        """Return the section with other values, which count as given."""
        section = structs.replace(self, **changes)
        structs.force_setattr(section, "given", self.given | changes.keys())
        return section


def is_set(section: Section, key: str) -> bool:
    """Return whether the dotted *key* was given by any layer, even with its default value."""
    *above, last = key.split(".")
    for part in above:
        section = getattr(section, part)
    return last in section.given


def contains(document: object, key: KeyPath) -> bool:
    """Return whether nested mappings and lists hold a value under *key*; never for the empty key."""
    for part in key:
        if isinstance(document, Sequence):
            document = dict(enumerate(document))
        if not isinstance(document, Mapping) or part not in document:
            return False
        document = document[part]
    return bool(key)
