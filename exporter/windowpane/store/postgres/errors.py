"""Errors of PostgreSQL as a `StoreError` of one line: what is wrong, with which store, and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psycopg

from windowpane.core.store_names import StoreUrl
from windowpane.exceptions import EventsRefusedError, StoreBusyError, StoreError

_BUSY: Final = {
    "55P03": "another process keeps the store locked; try again",
    "40001": "another process changed the same rows; try again",
    "40P01": "another process waits for the same rows; try again",
    "53300": "the server has no free connection; try again, or raise max_connections",
    "57014": "the statement took too long; try again",
}
_MEANINGS: Final = {
    "28P01": "the password was refused; check the user and the password of the URL or ~/.pgpass",
    "28000": "the user may not connect; check the user of the URL and the server's pg_hba.conf",
    "3D000": "there is no such database; create it with `createdb`",
    "53100": "the disk of the server is full; nothing of this batch was stored",
    "25006": "the server takes no writes: it is a standby, or set to read only",
    "42501": "the user lacks a permission; make it the owner of the database",
    "42P01": "is not a Windowpane store; open it once for writing, for example with `windowpane serve`",
    "57P01": "the server is shutting down; what was not stored is tried again",
    "57P02": "the server has crashed; what was not stored is tried again",
    "57P03": "the server is starting or stopping; what was not stored is tried again",
}
_ABOUT_DATA: Final = (
    psycopg.DataError,
    psycopg.IntegrityError,
    psycopg.NotSupportedError,
    psycopg.errors.ProgramLimitExceeded,  # a value too long for an index
)


@contextmanager
def reporting(address: StoreUrl) -> Iterator[None]:
    """Turn errors of psycopg into a `StoreError` that names the store, without its password."""
    try:
        yield
    except psycopg.Error as error:
        kind = StoreError
        if error.sqlstate in _BUSY:
            kind = StoreBusyError
        elif isinstance(error, _ABOUT_DATA):
            kind = EventsRefusedError
        raise kind(explain(address, error)) from error


def explain(address: StoreUrl, error: psycopg.Error) -> str:
    """Return one line about an error."""
    code = error.sqlstate or ""
    text = " ".join(str(error).replace(address.url, str(address)).split())
    meaning = _BUSY.get(code) or _MEANINGS.get(code) or _meaning_of(text)
    if meaning:
        return f"{address}: {meaning} ({_short(text)})"
    if isinstance(error, psycopg.OperationalError):
        return f"{address}: the server cannot be reached ({_short(text)})"
    return f"{address}: {_short(text)}"


def _meaning_of(text: str) -> str | None:
    """Return the meaning of an error while connecting, which has no code."""
    if "password authentication failed" in text or "no password supplied" in text:
        return _MEANINGS["28P01"]
    if "pg_hba.conf" in text or "not permitted to log in" in text or ('role "' in text and "does not" in text):
        return _MEANINGS["28000"]
    if "does not exist" in text and 'database "' in text:
        return _MEANINGS["3D000"]
    if "the database system is" in text:
        return _MEANINGS["57P03"]
    return None


def _short(text: str) -> str:
    """Return the part after the addresses that were tried, at most 200 characters."""
    _, _, cause = text.rpartition("FATAL: ")
    return (cause or text).strip()[:200]
