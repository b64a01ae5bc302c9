"""Export of events to files: JSON Lines with the exact stored bytes, or Parquet for analysis.

In JSON Lines the value of `event` is the body as it was hashed, byte for byte, so that the chain can be checked
without this program. A file appears under its name only when it is complete.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, Literal, NamedTuple

import msgspec

from windowpane.core.decoders import json_decoder
from windowpane.core.redaction import stored_id
from windowpane.core.version import install_command
from windowpane.exceptions import StoreError

if TYPE_CHECKING:
    import pyarrow as pa

ExportFormat = Literal["jsonl", "parquet"]

BATCH: Final = 5_000
"""Events read at once and held in memory."""
COLUMNS: Final = (
    "e.seq, s.session_id, s.revision, e.turn, (SELECT name FROM event_types WHERE id = e.type), e.at, e.hash, "
    "e.body"
)
"""The fields of an `ExportRow`, of events `e` and sessions `s`."""
_ROWS: Final = f"SELECT {COLUMNS} FROM events AS e JOIN sessions AS s ON s.key = e.session "  # noqa: S608
_ALL: Final = _ROWS + "WHERE e.seq > ? ORDER BY e.seq LIMIT ?"
_OF_SESSION: Final = _ROWS + (  # noqa: S608  # constants only
    "WHERE e.seq IN (SELECT seq FROM events WHERE seq > ? AND session IN "
    "(SELECT key FROM sessions WHERE session_id = ?) ORDER BY seq LIMIT ?) ORDER BY e.seq"
)


class ExportRow(NamedTuple):
    """One exported event."""

    seq: int
    session_id: str
    revision: int
    turn: int
    type: str
    at: float | None
    hash: bytes
    body: bytes


_document: Final = json_decoder(dict[str, msgspec.Raw])

Query = Callable[[str, tuple[object, ...]], list[tuple[Any, ...]]]
"""Runs a statement in its own short read transaction."""


def read_batches(query: Query, session_id: str | None) -> Iterator[list[ExportRow]]:
    """Yield every event, or those of all revisions of one session, in batches by number."""
    after = 0
    while True:
        if session_id is None:
            rows = query(_ALL, (after, BATCH))
        else:
            rows = query(_OF_SESSION, (after, stored_id(session_id), BATCH))
        if not rows:
            return
        yield [ExportRow(*row) for row in rows]
        after = rows[-1][0]


def write_json_lines(batches: Iterator[list[ExportRow]], file: Path) -> int:
    """Write one JSON object per line, as `json_line` makes it; return how many."""
    written = 0
    with _whole(file) as target:
        for batch in batches:
            target.writelines(map(json_line, batch))
            written += len(batch)
    return written


def json_line(row: ExportRow) -> bytes:
    """Return one event as a line: `seq`, `revision`, `hash` and the exact `event`.

    Bytes that are not JSON are written as Base64 in `damaged`, with an `event` of null.
    """
    head = b'{"seq":%d,"revision":%d,"hash":"%b","event":' % (row.seq, row.revision, row.hash.hex().encode())
    body = stored_bytes(row.body)
    try:
        _document.decode(body)
        body.decode()
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return head + b'null,"damaged":"%b"}\n' % base64.b64encode(body)
    return head + body + b"}\n"


def stored_bytes(body: bytes | str) -> bytes:
    """Return the stored bytes, also where they were replaced by a text."""
    return body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body


def write_parquet(batches: Iterator[list[ExportRow]], file: Path) -> int:
    """Write a Parquet file with the row's columns and the body as text; return how many events."""
    written = 0
    with _whole(file) as target, parquet_writer(target) as write:
        for batch in batches:
            write(batch)
            written += len(batch)
    return written


@contextmanager
def parquet_writer(target: IO[bytes]) -> Iterator[Callable[[list[ExportRow]], None]]:
    """Return a function that adds a batch to *target*, which is written from front to back and never read.

    Raises `StoreError` where pyarrow is not installed.
    """
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise StoreError(f"Parquet needs pyarrow: {install_command('parquet')}") from error
    schema = _schema(pa)

    with parquet.ParquetWriter(target, schema, compression="zstd") as writer:

        def write(batch: list[ExportRow]) -> None:
            documents = [
                {
                    **row._asdict(),
                    "hash": row.hash.hex(),
                    "body": stored_bytes(row.body).decode("utf-8", "backslashreplace"),
                }
                for row in batch
            ]
            writer.write_table(pa.Table.from_pylist(documents, schema))

        yield write


def _schema(arrow: Any) -> pa.Schema:
    return arrow.schema(
        [
            ("seq", arrow.int64()), ("session_id", arrow.string()), ("revision", arrow.int32()),
            ("turn", arrow.int64()), ("type", arrow.string()), ("at", arrow.float64()),
            ("hash", arrow.string()), ("body", arrow.string()),
        ]
    )  # fmt: skip


@contextmanager
def _whole(file: Path) -> Iterator[IO[bytes]]:
    """Open a file that gets its name when everything has been written and is deleted otherwise."""
    part = file.with_name(f"{file.name}.part")
    try:
        with part.open("wb") as target:
            yield target
        part.replace(file)
    except OSError as error:
        raise StoreError(f"{file}: cannot be written ({error.strerror or error})") from error
    finally:
        part.unlink(missing_ok=True)
