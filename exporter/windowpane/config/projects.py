"""Projects: the tokens that may write their sessions, their retention, and the receivers of their alerts.

A token is written as it is, or as `sha256:` with its digest, so that the configuration need not hold the secret.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Annotated, Final

from pydantic import Field, SecretStr

from windowpane.config.outputs import ChannelConfig
from windowpane.config.section import NUMBER, Positive, Section, checked_by
from windowpane.core.names import check_project

HASHED: Final = "sha256:"
MINIMUM_TOKEN_CHARACTERS: Final = 16
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


class ProjectRetention(Section):
    """Limits of the stored sessions of a project; None for the store's own."""

    days: Positive | None = None
    bytes: Annotated[int, Field(gt=0), NUMBER] | None = None
    """Part of the store's size that the project may take, by its share of the events."""


def _strong(tokens: tuple[SecretStr, ...]) -> None:
    for token in tokens:
        text = token.get_secret_value()
        digest = text.removeprefix(HASHED)
        if digest != text and _DIGEST.fullmatch(digest) is None:
            raise ValueError(f"a token that starts with {HASHED} must go on with 64 hexadecimal digits")
        if len(text) < MINIMUM_TOKEN_CHARACTERS:
            raise ValueError(f"a token must have at least {MINIMUM_TOKEN_CHARACTERS} characters")


class ProjectConfig(Section):
    """One project."""

    tokens: Annotated[tuple[SecretStr, ...], checked_by(_strong)] = ()
    """Tokens with which agents on other hosts send sessions of this project; several, while one is replaced."""
    retention: ProjectRetention = ProjectRetention()
    channels: tuple[ChannelConfig, ...] | None = None
    """Receivers of this project's alerts instead of `notify.channels`; None for those."""


def check_projects(projects: dict[str, ProjectConfig]) -> None:
    """Raise for an invalid name of a project, and for a token of two projects."""
    owners: dict[bytes, str] = {}
    for name, project in projects.items():
        check_project("projects", name or "?")
        for token in project.tokens:
            owner = owners.setdefault(token_digest(token), name)
            if owner != name:
                raise ValueError(f"the projects {owner!r} and {name!r} have a token in common")


def token_digest(token: SecretStr) -> bytes:
    """Return the SHA-256 digest of a configured token."""
    text = token.get_secret_value()
    if text.startswith(HASHED):
        return bytes.fromhex(text.removeprefix(HASHED))
    return sha256(text.encode("utf-8", "surrogatepass")).digest()


def project_of_token(projects: Mapping[str, ProjectConfig], token: str) -> str | None:
    """Return the project that *token* may write to, or None.

    Every token of every project is compared, in constant time, so the time reveals nothing about them.
    """
    given = sha256(token.encode("utf-8", "surrogatepass")).digest()
    owner = None
    for name, project in projects.items():
        for accepted in project.tokens:
            if hmac.compare_digest(given, token_digest(accepted)):
                owner = name
    return owner


def hashed_token(token: str) -> str:
    """Return the form of a token that a configuration may hold without giving it away."""
    return f"{HASHED}{sha256(token.encode()).hexdigest()}"
