"""Logins that their users have ended, so that a copy of the cookie is worth nothing.

Streamlit only removes the cookie from the browser that signs out. The ended logins are kept next to the store, as
long as their cookies could count. Where that is impossible, a login from before the start of this process counts
as ended.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter

from windowpane.config.paths import default_store, local_base
from windowpane.effects.private_files import write_whole

SUFFIX: Final = ".ended-logins.json"
LONGEST_SECONDS: Final = 720 * 3600.0
"""The longest time for which the configuration may let a login count."""
_CLAIMS: Final = ("iss", "sub", "iat", "nonce")
"""The claims that differ between any two logins."""
_TIMES: Final = TypeAdapter(dict[str, float])

_log: Final = logging.getLogger(__name__)
_lock: Final = threading.Lock()
_unwritten: Final[dict[str, float]] = {}
"""Ended logins that could not be written, with their times."""
_started_at: Final = time.time()


def end(claims: Mapping[str, Any]) -> None:
    """Record that the user of the login with these claims has signed out."""
    now = time.time()
    with _lock:
        try:
            ended = {name: at for name, at in _read().items() if now - at < LONGEST_SECONDS}
            _write({**ended, _name(claims): now})
        except (OSError, ValueError) as error:
            _unwritten[_name(claims)] = now
            _log.warning("%s: the end of a login is kept until this process ends: %s", _file(), error)


def is_ended(claims: Mapping[str, Any]) -> bool:
    """Return whether the login with these claims was ended, or may have been."""
    name = _name(claims)
    try:
        return name in _unwritten or name in _read()
    except (OSError, ValueError):
        issued = claims.get("iat")
        return not isinstance(issued, int | float) or issued < _started_at


def prepare() -> None:
    """Write the file as it is, so that it exists where it can be written."""
    try:
        with _lock:
            _write(_read() if _file().exists() else {})
    except (OSError, ValueError) as error:
        _log.warning("%s: logins from before this start do not count: %s", _file(), error)


def _read() -> dict[str, float]:
    """Return the ended logins with their times. Raises `OSError` or `ValueError`."""
    return _TIMES.validate_json(_file().read_bytes())


def _write(ended: Mapping[str, float]) -> None:
    write_whole(_file(), _TIMES.dump_json(dict(ended)))


def _file() -> Path:
    base = local_base(default_store())
    return base.with_name(base.name + SUFFIX)


def _name(claims: Mapping[str, Any]) -> str:
    return sha256(json.dumps([claims.get(name) for name in _CLAIMS], default=str).encode()).hexdigest()
