"""Captured content: redacted texts, stored once per digest and deletable without touching the chain."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from windowpane.core.events import BlockAdded, Event, FidelityEvaluated
from windowpane.core.redaction import join_split_secrets
from windowpane.store.database import Database
from windowpane.store.statements import Value

Redactor = Callable[[str], str]
"""Text to the same text without its secrets."""

PREVIEW_CHARS: Final = 80
BATCH: Final = 50
"""Texts that one statement reads; fewer are filled up, so that the statement is the same for every number."""
_COMPRESSION: Final = 1
"""The fastest level: content is compressed on the write path, and this level halves its size already."""
_INSERT: Final = "INSERT INTO contents (digest, chars, preview, body) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
_QUEUE: Final = "INSERT INTO content_queue (digest) VALUES (?) ON CONFLICT DO NOTHING"
"""The text waits to be indexed for search."""
_AMONG: Final = f"FROM contents WHERE digest IN ({', '.join('?' * BATCH)})"
_PREVIEWS: Final = f"SELECT digest, preview {_AMONG}"  # our columns
_BODIES: Final = f"SELECT digest, body {_AMONG}"  # our columns


class CapturedText(NamedTuple):
    """A text to store under the digest that events know it by."""

    digest: str
    text: str


class ContentCapture:
    """Collects the texts of a batch and stores them redacted."""

    def __init__(self, redact: Redactor) -> None:
        self._redact = redact
        self._texts: dict[str, str] = {}
        self._runs: list[list[str]] = []
        self._run_of: tuple[str, str] | None = None

    def __len__(self) -> int:
        return len(self._texts)

    def empty_copy(self) -> ContentCapture:
        """Return another collector with the same redactor, for texts outside the current batch."""
        return ContentCapture(self._redact)

    def collect(self, event: Event) -> None:
        """Add the texts that an event carries in memory only."""
        data = event.data
        run_of = (event.context.session_id, data.block.content_type) if isinstance(data, BlockAdded) else None
        self._add(texts_of(event), run_of)

    def add(self, texts: Iterable[CapturedText]) -> None:
        """Add texts that did not come with an event."""
        self._add(texts, None)

    def _add(self, texts: Iterable[CapturedText], run_of: tuple[str, str] | None) -> None:
        """Add texts; consecutive blocks of one type are a run, where a secret can continue in the next text."""
        for captured in texts:
            if captured.digest in self._texts:
                continue
            self._texts[captured.digest] = captured.text
            if run_of is None or run_of != self._run_of:
                self._runs.append([])
            self._runs[-1].append(captured.digest)
        self._run_of = run_of

    def discard(self) -> None:
        """Drop what was collected: its batch was not stored."""
        self._texts.clear()
        self._runs.clear()
        self._run_of = None

    def take_redacted(self) -> list[CapturedText]:
        """Remove and return the texts as the store would hold them, for a spool file."""
        return [CapturedText(digest, self._redact(text)) for digest, text in self._take().items()]

    def save(self, connection: Database) -> None:
        """Store the new texts, inside the caller's transaction."""
        texts = self._take()
        rows = []
        for digest, text in texts.items():
            if not holds(connection, digest):
                clean = self._redact(text)
                body = zlib.compress(clean.encode("utf-8", "surrogatepass"), _COMPRESSION)
                rows.append((digest, len(clean), preview(clean), body))
        connection.executemany(_INSERT, rows)
        connection.executemany(_QUEUE, ((row[0],) for row in rows))

    def _take(self) -> dict[str, str]:
        """Remove and return the texts, without secrets that continue from one to the next."""
        texts: dict[str, str] = {}
        for run in self._runs:
            texts.update(zip(run, join_split_secrets([self._texts[digest] for digest in run]), strict=True))
        self.discard()
        return texts


def texts_of(event: Event) -> list[CapturedText]:
    """Return the texts an event carries in memory only."""
    data = event.data
    if isinstance(data, BlockAdded):
        block = data.block
        return [CapturedText(block.digest, block.text)] if block.text and block.digest else []
    if isinstance(data, FidelityEvaluated):
        return [CapturedText(fact.digest, fact.text) for fact in data.facts if fact.text and fact.digest]
    return []


def preview(text: str) -> str:
    """Return the start of a text on one line, at most 80 characters."""
    line = " ".join(text[: 4 * PREVIEW_CHARS].split())
    clean = line.encode("utf-8", "replace").decode()
    return clean if len(clean) <= PREVIEW_CHARS else clean[: PREVIEW_CHARS - 1] + "…"


def read(connection: Database, digest: str) -> str | None:
    """Return the captured text of a digest, or None."""
    row = connection.execute("SELECT body FROM contents WHERE digest = ?", (digest,)).fetchone()
    return None if row is None else zlib.decompress(row[0]).decode("utf-8", "surrogatepass")


def read_in_batches(connection: Database, digests: Iterable[str]) -> Iterator[CapturedText]:
    """Yield the captured texts of the digests, in their order; one batch is read at a time."""
    following = iter(digests)
    while batch := list(islice(following, BATCH)):
        bodies = dict(connection.execute(_BODIES, filled_up(batch)).fetchall())
        for digest in batch:
            if digest in bodies:
                yield CapturedText(digest, zlib.decompress(bodies[digest]).decode("utf-8", "surrogatepass"))


def batches(values: Iterable[Value]) -> Iterator[list[Value]]:
    """Yield *values* by `BATCH`, the last batch `filled_up`."""
    following = iter(values)
    while batch := list(islice(following, BATCH)):
        yield filled_up(batch)


def filled_up(batch: Sequence[Value]) -> list[Value]:
    """Return `BATCH` values: those of the batch, the last one repeated."""
    return [*batch, *[batch[-1]] * (BATCH - len(batch))]


def holds(connection: Database, digest: str) -> bool:
    """Return whether the text of a digest was captured."""
    return connection.execute("SELECT 1 FROM contents WHERE digest = ?", (digest,)).fetchone() is not None


def previews(connection: Database, digests: set[str]) -> dict[str, str]:
    """Return the previews of those digests whose text was captured."""
    if connection.execute("SELECT 1 FROM contents LIMIT 1").fetchone() is None:
        return {}
    previews: dict[str, str] = {}
    for batch in batches(sorted(digests)):
        previews.update(connection.execute(_PREVIEWS, batch).fetchall())
    return previews


def delete(connection: Database, digest: str | None) -> int:
    """Delete the text of a digest, or all texts for None, which are no longer indexed; return how many."""
    if digest is None:
        return connection.execute("DELETE FROM contents").rowcount
    return connection.execute("DELETE FROM contents WHERE digest = ?", (digest,)).rowcount
