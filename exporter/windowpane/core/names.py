"""Names of agents, models, sessions and projects as users pass them."""

from __future__ import annotations

import re
from typing import Final

from windowpane.exceptions import ConfigurationError

PROJECT_EXPECTED: Final = "at most 64 letters, digits, dots, dashes or underscores, a letter or digit first"
_PROJECT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def check_name(key: str, name: object) -> None:
    """Raise `ConfigurationError` about *key* unless *name* is a text that is not empty."""
    if not isinstance(name, str):
        raise ConfigurationError(key, f"a {type(name).__name__}", expected="a name")
    if not name:
        raise ConfigurationError(key, "must not be empty", expected="a short name")


def check_description(**texts: object) -> None:
    """Raise `ConfigurationError` about the first of *texts* that is not a text; it may be empty."""
    for key, text in texts.items():
        if not isinstance(text, str):
            raise ConfigurationError(key, f"a {type(text).__name__}", expected="a text")


def check_project(key: str, name: object) -> None:
    """Raise `ConfigurationError` about *key* unless *name* is the name of a project, or empty for none."""
    check_description(**{key: name})
    if name and _PROJECT.fullmatch(str(name)) is None:
        raise ConfigurationError(key, "is not the name of a project", expected=PROJECT_EXPECTED)
