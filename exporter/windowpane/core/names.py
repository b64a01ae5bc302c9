"""Names of agents, models and sessions as users pass them."""

from __future__ import annotations

from windowpane.exceptions import ConfigurationError


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
