"""Base of all sections of the configuration, and the types of their numbers and addresses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from windowpane.core.limits import MAXIMUM_TOKENS

Document = dict[str, Any]
KeyPath = tuple[str | int, ...]


def _no_boolean(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError(f"{str(value).lower()} is not a number")  # noqa: TRY004 (Pydantic reports only ValueErrors)
    return value


NUMBER: Final = BeforeValidator(_no_boolean)
"""Rejects booleans: YAML reads `yes` and `on` as true, which would count as 1."""
Ratio = Annotated[float, NUMBER, Field(ge=0, le=1)]
Share = Annotated[float, NUMBER, Field(gt=0, le=1)]
Turns = Annotated[int, NUMBER, Field(ge=1)]
Tokens = Annotated[int, NUMBER, Field(ge=1, le=MAXIMUM_TOKENS)]


def _http_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # an invalid port or IPv6 address
        is_usable = False
    if not is_usable or any(character.isspace() for character in url):
        raise ValueError("must be a URL that starts with http:// or https:// and names a host")
    if "@" in parts.netloc:  # it would be shown in messages and logs
        raise ValueError("must not hold a user or password; credentials have separate keys")
    return url


HttpUrl = Annotated[str, AfterValidator(_http_url)]


class Section(BaseModel):
    """Base of all sections: unknown keys are errors, and values are immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

    @model_validator(mode="before")
    @classmethod
    def _empty(cls, given: object) -> object:
        """Use the defaults for a section in which every line is commented out."""
        return {} if given is None else given


def is_set(section: BaseModel, key: str) -> bool:
    """Return whether the dotted *key* was given by any layer, even with its default value."""
    *above, last = key.split(".")
    for part in above:
        section = getattr(section, part)
    return last in section.model_fields_set


def contains(document: object, key: KeyPath) -> bool:
    """Return whether nested mappings and lists hold a value under *key*; never for the empty key."""
    for part in key:
        if isinstance(document, Sequence):
            document = dict(enumerate(document))
        if not isinstance(document, Mapping) or part not in document:
            return False
        document = document[part]
    return bool(key)
