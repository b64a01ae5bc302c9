"""Captured content: redacted texts, stored once per digest and deletable without touching the chain."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

import msgspec

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


class CapturedText(msgspec.Struct, frozen=True):
    """A text to store under the digest that events know it by; also its line in a batch or a spool file."""

    digest: str
    text: str


def preview(text: str) -> str:
    """Return the start of a text on one line, at most 80 characters."""
    line = " ".join(text[: 4 * PREVIEW_CHARS].split())
    clean = line.encode("utf-8", "replace").decode()
    return clean if len(clean) <= PREVIEW_CHARS else clean[: PREVIEW_CHARS - 1] + "…"


def insert(connection: Database, texts: Iterable[CapturedText]) -> None:
    """Store redacted texts, each under its digest unless there is one."""
    rows = [(one.digest, len(one.text), preview(one.text), _compressed(one.text)) for one in texts]
    connection.executemany(_INSERT, rows)
    connection.executemany(_QUEUE, ((row[0],) for row in rows))


def _compressed(text: str) -> bytes:
    return zlib.compress(text.encode("utf-8", "surrogatepass"), _COMPRESSION)


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


def delete(connection: Database, digest: str | None) -> None:
    """Delete the text of a digest, or all texts for None, which are no longer indexed."""
    if digest is None:
        connection.execute("DELETE FROM contents")
    else:
        connection.execute("DELETE FROM contents WHERE digest = ?", (digest,))
