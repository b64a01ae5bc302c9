"""The tokens of projects: making one, and finding the project that one belongs to."""

from __future__ import annotations

import hmac
from hashlib import sha256
from typing import TYPE_CHECKING

from windowpane.config.projects import HASHED, token_digest

if TYPE_CHECKING:
    from windowpane.config.schema import Config


def project_of_token(config: Config, token: str) -> str | None:
    """Return the project that *token* may write to, or None.

    Every token of every project is compared, in constant time, so the time reveals nothing about them.
    """
    given = sha256(token.encode("utf-8", "surrogatepass")).digest()
    owner = None
    for name, project in config.projects.items():
        for accepted in project.tokens:
            if hmac.compare_digest(given, token_digest(accepted)):
                owner = name
    return owner


def hashed_token(token: str) -> str:
    """Return the form of a token that a configuration may hold without giving it away."""
    return f"{HASHED}{sha256(token.encode()).hexdigest()}"
