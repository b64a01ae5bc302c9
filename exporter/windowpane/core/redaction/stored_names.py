"""Names, ids and free text of events without secrets: of agents, models, tools, sessions and payloads.

They come from recordings, callers and servers, and are stored whether texts are captured or not.
"""

from __future__ import annotations

from hashlib import blake2b

from windowpane.core.redaction.redactor import redact
from windowpane.core.remembered import Remembered


def _without_secrets(name: str) -> str:
    return redact(name).text


def _distinct(identifier: str) -> str:
    clean = redact(identifier).text
    if clean is identifier:
        return identifier
    return f"{clean}-{blake2b(identifier.encode('utf-8', 'replace'), digest_size=6).hexdigest()}"


_NAMES: Remembered[str, str] = Remembered(_without_secrets)
_IDS: Remembered[str, str] = Remembered(_distinct)


def stored_name(name: str) -> str:
    """Return *name* without secrets."""
    return _NAMES[name]


def stored_id(identifier: str) -> str:
    """Return *identifier* without secrets; different ones stay different."""
    return _IDS[identifier]
