"""Base of all sections of the configuration, and the types of their numbers, addresses and secrets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Annotated, Any, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, model_validator

from windowpane.core.limits import MAXIMUM_TOKENS


def _number(given: object) -> object:
    if isinstance(given, bool):  # YAML reads `yes` and `on` as true
        raise ValueError(f"{str(given).lower()} is not a number")  # noqa: TRY004  # Pydantic collects it
    if isinstance(given, str) and "e" in given.lower():  # YAML reads `1e3` as text
        with suppress(ValueError):
            return float(given)
    return given


NUMBER = BeforeValidator(_number)
"""Beside `int` or `float` in the type of a key: no boolean is a number."""

Ratio = Annotated[float, Field(ge=0, le=1), NUMBER]
Share = Annotated[float, Field(gt=0, le=1), NUMBER]
Positive = Annotated[float, Field(gt=0), NUMBER]
Count = Annotated[int, Field(ge=1), NUMBER]
Port = Annotated[int, Field(ge=0, le=65535), NUMBER]
Tokens = Annotated[int, Field(ge=1, le=MAXIMUM_TOKENS), NUMBER]


def checked_by(check: Callable[[Any], object]) -> AfterValidator:
    """Return the validator of a key about whose values *check* raises `ValueError`."""

    def validate(value: Any) -> Any:
        check(value)
        return value

    return AfterValidator(validate)


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


HttpUrl = Annotated[str, checked_by(_http_url)]


def _not_empty(secret: SecretStr) -> None:
    if not secret.get_secret_value():
        raise ValueError("must not be empty")


GivenSecret = Annotated[SecretStr, checked_by(_not_empty)]


class Section(BaseModel):
    """Base of all sections: immutable values under their keys.

    `model_fields_set` has the keys that any layer set, even with the default value.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    @classmethod
    def completed(cls, given: dict[Any, Any]) -> dict[Any, Any]:
        """Return the mapping that a section is made of, where one key decides about others."""
        return given

    def _check(self) -> None:
        """Raise `ValueError` where valid values contradict each other."""

    @model_validator(mode="before")
    @classmethod
    def _completed(cls, given: object) -> object:
        if given is None:  # every line of the section is commented out
            given = {}
        return cls.completed(dict(given)) if isinstance(given, Mapping) else given

    @model_validator(mode="after")
    def _checked(self) -> Self:
        self._check()
        return self


def is_set(section: Section, key: str) -> bool:
    """Return whether the dotted *key* was given by any layer, even with its default value."""
    *above, last = key.split(".")
    for part in above:
        section = getattr(section, part)
    return last in section.model_fields_set
