"""The delivery of one batch: the responses of a server, and the records that it refuses for good.

A refused record would be refused again, so it does not hold up the others: it is written to a file beside the
spool, with the reason, and reported as lost.
"""

from __future__ import annotations

import logging
import os
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec
from pydantic import ValidationError

from windowpane.core.events import Event
from windowpane.core.version import package_version
from windowpane.effects.error_boundary import ErrorBoundary
from windowpane.effects.http_client import HttpClient, HttpResponse, UnreachableError
from windowpane.effects.private_files import MODE_FILE, create_folder
from windowpane.outputs.remote.batches import CONTENT_TYPE, Outcome, Record, compressed
from windowpane.outputs.remote.connection import ServerAddress

MAXIMUM_REFUSED_BYTES: Final = 16 * 2**20
"""Size from which the file of refused records does not grow."""
SHOWN_CHARACTERS: Final = 200
LONGEST_RETRY_SECONDS: Final = 600.0
"""Longest wait that the server can ask for."""
_OK: Final = 200
_UNPROCESSED: Final = 400
_TOO_LARGE: Final = 413
_HINTS: Final = {
    401: "it does not accept the token; set WINDOWPANE_INGEST_TOKEN",
    403: "it does not accept this client",
    404: "it does not receive events; start it as `windowpane serve --ingest`",
    429: "it has too much to do for now",
}

_log = logging.getLogger("windowpane")


class UndeliveredError(Exception):
    """The server has not acknowledged a batch, and may do so later."""

    def __init__(self, problem: str, *, retry_after_seconds: float = 0.0) -> None:
        super().__init__(problem)
        self.retry_after_seconds = retry_after_seconds
        """The wait that the server asks for; 0 without one."""


class _RefusedLine(msgspec.Struct):
    problem: str
    record: msgspec.Raw


class Delivery:
    """Delivers batches to a server; collects the events that it refuses."""

    def __init__(
        self,
        server: ServerAddress,
        *,
        token: str | None,
        tls: ssl.SSLContext | None,
        timeout_seconds: float,
        refused_file: Path,
        record_seconds: Callable[[float], object],
    ) -> None:
        self._server = server
        self._headers = {
            "Content-Type": CONTENT_TYPE,
            "Content-Encoding": "gzip",
            "User-Agent": f"windowpane/{package_version()}",
        }
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        self._client = HttpClient(tls=tls, uses_proxies=False)
        self._timeout = timeout_seconds
        self._record_seconds = record_seconds
        self._file = refused_file
        self._boundary = ErrorBoundary(_log)
        self.after_fork()

    def after_fork(self) -> None:
        """Start over in a forked child."""
        self._lock = threading.Lock()  # guards the list
        self._refused: list[Event] = []
        self._client.after_fork()

    def deliver(self, batch: Sequence[Record]) -> None:
        """Return when the server has stored the batch, except for what it refuses. Raises `UndeliveredError`."""
        started = time.perf_counter()
        try:
            response = self._client.post(
                self._server.endpoint, compressed(batch), self._headers, timeout_seconds=self._timeout
            )
        except UnreachableError as error:
            raise UndeliveredError(f"{self._server.url}: {error}") from error
        outcome = _outcome_of(response)
        if outcome is not None:
            refused = [(batch[one.record - 1], one.problem) for one in outcome.refused]
            _check_all_named(batch, outcome, refused)
            self._record_seconds(time.perf_counter() - started)
            self._refuse(refused)
        elif response.status != _TOO_LARGE:
            wait = min(response.retry_after_seconds, LONGEST_RETRY_SECONDS)
            raise UndeliveredError(_explained(response), retry_after_seconds=wait)
        elif len(batch) == 1:
            self._refuse([(batch[0], "too large for the server")])
        else:
            middle = len(batch) // 2
            self.deliver(batch[:middle])
            self.deliver(batch[middle:])

    def take_refused(self) -> list[Event]:
        """Remove and return the events that were refused since the last call."""
        with self._lock:
            refused, self._refused = self._refused, []
        return refused

    def abort(self) -> None:
        """End the request in progress."""
        self._client.abort()

    def _refuse(self, refused: Sequence[tuple[Record, str]]) -> None:
        if not refused:
            return
        with self._lock:
            self._refused += [record.event for record, _ in refused if record.event is not None]
        self._boundary.warn(
            "refused", "the ingest server refused %d records: %s; they are in %s",
            len(refused), refused[-1][1], self._file,
        )  # fmt: skip
        with self._boundary.contain("writing refused records"):
            self._write(refused)

    def _write(self, refused: Sequence[tuple[Record, str]]) -> None:
        create_folder(self._file.parent)
        descriptor = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, MODE_FILE)
        with os.fdopen(descriptor, "ab") as file:
            for record, problem in refused:
                if file.tell() < MAXIMUM_REFUSED_BYTES:
                    file.write(msgspec.json.encode(_RefusedLine(problem, msgspec.Raw(record.line))) + b"\n")


def _outcome_of(response: HttpResponse) -> Outcome | None:
    """Return what became of the records; None where the response is not about records."""
    if response.status not in (_OK, _UNPROCESSED):
        return None
    try:
        return Outcome.model_validate_json(response.body)
    except ValidationError:
        return None


def _check_all_named(batch: Sequence[Record], outcome: Outcome, refused: Sequence[tuple[Record, str]]) -> None:
    """Raise `UndeliveredError` where the server has read fewer events than were sent: the body was changed."""
    sent = sum(record.event is not None for record in batch)
    read = outcome.stored + outcome.repeated + sum(record.event is not None for record, _ in refused)
    if read < sent:
        raise UndeliveredError(f"the ingest server has received {read} of {sent} events")


def _explained(response: HttpResponse) -> str:
    hint = _HINTS.get(response.status)
    if hint is None:
        hint = " ".join(response.body[:SHOWN_CHARACTERS].decode("utf-8", "replace").split())
    return f"the ingest server answered {response.status}: {hint}"
