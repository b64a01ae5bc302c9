"""Asks a server of this machine whether it is there, past whatever proxy the environment names."""

from __future__ import annotations

from http.client import HTTPException
from typing import Final
from urllib.error import HTTPError
from urllib.request import ProxyHandler, build_opener

_DIRECT: Final = build_opener(ProxyHandler({}))


def status_of(url: str, *, timeout_seconds: float) -> int | None:
    """The HTTP status that *url* answers with; None where nothing answers, or not in HTTP."""
    try:
        with _DIRECT.open(url, timeout=timeout_seconds) as answer:
            return int(answer.status)
    except HTTPError as error:
        error.close()
        return error.code
    except (OSError, HTTPException, ValueError):
        return None
