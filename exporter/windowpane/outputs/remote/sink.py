"""The sink that takes the place of the store's where the store is on another machine."""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

from windowpane.core.digests import KEY_BYTES, keyed_digester
from windowpane.core.events import Event
from windowpane.core.protocols import Digester, EventsSkippedError
from windowpane.effects.private_files import MODE_FILE, create_folder
from windowpane.exceptions import StoreBusyError, StoreError
from windowpane.outputs.remote.connection import client_context, server_address
from windowpane.outputs.remote.delivery import Delivery
from windowpane.outputs.remote.sender import Sender
from windowpane.store.captured_content import Redactor
from windowpane.store.keys import AuditKeys
from windowpane.store.writes.spool import Spool, waiting_files

if TYPE_CHECKING:
    from windowpane.config.outputs import IngestConfig
    from windowpane.metrics.internal import InternalMetrics

SETTLE_SECONDS: Final = 1.0
"""Longest wait of one attempt to flush; the pipeline repeats it within its own limit."""

_log = logging.getLogger("windowpane")


class RemoteSink:
    """Sends events to `windowpane serve --ingest`. Writing only queues; `flush` waits for the acknowledgement.

    *files* is the path beside which its files are: what waits, what was refused, and the key of the digests.
    What waits belongs to *project*, or without one to the token: see `waiting_base`.
    """

    store: Final = None
    """There is no store on this machine."""

    def __init__(
        self,
        url: str,
        settings: IngestConfig,
        *,
        files: Path,
        project: str = "",
        keys: AuditKeys,
        redact: Redactor | None,
        internal: InternalMetrics,
    ) -> None:
        address = server_address(url, insecure=settings.insecure)
        tls = None
        if address.is_encrypted:
            tls = client_context(ca=settings.ca, certificate=settings.certificate, key=settings.key)
        self._count_drops = internal.record_drop
        self._delivery = Delivery(
            address,
            token=None if settings.token is None else settings.token.get_secret_value(),
            tls=tls,
            timeout_seconds=settings.timeout_seconds,
            record_seconds=internal.record_store_write,
            refused_file=files.with_name("refused.jsonl"),
        )
        waiting = waiting_base(files, settings, project)
        _adopt(files, waiting)
        spool = Spool(waiting, keys=keys, redact=redact, maximum_bytes=settings.spool_bytes)
        self._sender = Sender(self._delivery, spool, redact=redact)
        self.digest: Digester = keyed_digester(_digest_key(files.with_name("digest-key")))
        self.on_opened: list[Callable[[], object]] = []
        self.on_replaced: list[Callable[[], object]] = []

    @property
    def available(self) -> bool:
        """True while the server takes events."""
        return not self.problem

    @property
    def problem(self) -> str:
        """Reason for which the last request failed; empty while the server takes events."""
        return self._sender.problem

    @property
    def unsent_events(self) -> int:
        """Number of events in memory that the server has not acknowledged."""
        return self._sender.unsent_events

    def start(self) -> None:
        """Start to send the files of earlier processes."""
        self._sender.start()

    def write(self, batch: Sequence[Event]) -> None:
        """Queue a batch; raises `EventsSkippedError` for events without room or refused by the server."""
        self._report_lost(self._sender.put(batch))

    def flush(self) -> None:
        """Return when the server has stored all events durably. Raises `StoreError` while it has not."""
        is_settled = self._sender.settle(SETTLE_SECONDS)
        self._report_lost(())
        damaged = self._sender.take_damaged()
        if damaged:
            self._count_drops("store", "error", damaged)
            raise StoreError(f"{damaged} events are lost: the file in which they waited was damaged")
        if not is_settled:
            if self.problem:
                raise StoreError(self.problem)
            raise StoreBusyError("the ingest server has not acknowledged everything yet")

    def spool(self, events: Sequence[Event]) -> int:
        """Take the last events, which `close` moves to a spool file; return how many have room."""
        return len(events) - len(self._sender.put(events))

    def after_fork(self) -> None:
        """Start over in a forked child."""
        self._sender.after_fork()

    def close(self) -> None:
        """Stop sending; what is not acknowledged waits in a spool file for the next process."""
        lost = self._sender.close()
        if lost:
            self._count_drops("store", "error", lost)
            _log.error("%d events are lost: neither the ingest server nor the spool took them", lost)

    def release(self) -> None:
        """Close; the next write starts to send again."""
        self.close()
        self._sender.after_fork()

    def _report_lost(self, without_room: Sequence[Event]) -> None:
        refused = self._delivery.take_refused()
        if without_room:
            error: Exception = OverflowError("the ingest server takes none, and memory and spool are full")
            raise EventsSkippedError([*refused, *without_room], error)
        if refused:
            raise EventsSkippedError(refused, StoreError("the ingest server refused them"))


def waiting_base(files: Path, settings: IngestConfig, project: str) -> Path:
    """Return the path beside which the events wait that this process may send.

    The server stores events for the project of the token that they are sent with, so what one project left must
    not be sent with the token of another. A project that is named keeps its files when its token is replaced.
    """
    sender = f"project {project}" if project else ""
    if not sender and settings.token is not None:
        sender = f"token {settings.token.get_secret_value()}"
    if not sender and settings.certificate is not None:
        sender = f"certificate {settings.certificate}"
    return files.with_name(f"{files.name}-{sha256(sender.encode()).hexdigest()[:12]}") if sender else files


def _adopt(files: Path, waiting: Path) -> None:
    """Take over what waits from before a token, a certificate or a project was configured."""
    for file in waiting_files(files) if waiting != files else ():
        with suppress(OSError):  # another process has taken it over
            file.rename(file.with_name(file.name.replace(files.name, waiting.name, 1)))


def _digest_key(file: Path) -> bytes:
    """Return the key of the digests of this machine's texts, which is made at its first use.

    Of processes that start together one makes it, and the others read it. Where the file cannot be used, the key
    is this process's alone.
    """
    try:
        create_folder(file.parent)
        if not _holds_key(file):
            _create_key(file)
        return file.read_bytes()[:KEY_BYTES]
    except OSError as error:
        _log.warning("%s cannot be used: %s; equal texts get other digests in other processes", file, error)
        return secrets.token_bytes(KEY_BYTES)


def _holds_key(file: Path) -> bool:
    with suppress(FileNotFoundError):
        return file.stat().st_size >= KEY_BYTES
    return False


def _create_key(file: Path) -> None:
    """Create a whole key file under its name in one step, unless another process was faster."""
    new = file.with_name(f"{file.name}.{os.getpid()}-{secrets.token_hex(4)}")
    try:
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE_FILE)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(secrets.token_bytes(KEY_BYTES))
        try:
            os.link(new, file)
        except FileExistsError:
            if not _holds_key(file):  # a write was cut short
                new.replace(file)
        except OSError:  # a file system without links
            new.replace(file)
    finally:
        new.unlink(missing_ok=True)
