"""Downloads of filtered events as JSON Lines, CSV or Parquet, streamed from the dashboard's own server.

Streamlit holds its own downloads in memory; these are written while they are read, one batch at a time. JSON
Lines and Parquet have the shape that `windowpane audit export` gives, with the exact bytes that were hashed.

The pages are protected by Streamlit's check of where a connection comes from, which does not look at other
addresses. So each address here carries a signature that only a page of this process can give.
"""

from __future__ import annotations

import csv
import hmac
import io
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, tzinfo
from typing import Final, NamedTuple
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from windowpane.config.paths import default_store
from windowpane.core.codec import decode
from windowpane.exceptions import EventFormatError, WindowpaneError
from windowpane.store.filters import EventFilter
from windowpane.store.open import open_reader
from windowpane.store.reads.export import ExportRow, json_line, parquet_writer
from windowpane.store.reads.reader import Reader
from windowpane.text.events import describe_damage, describe_event
from windowpane_dashboard.page import visitor
from windowpane_dashboard.page.long_ranges import long_ranges
from windowpane_dashboard.page.visitor import Visitor
from windowpane_dashboard.queries.events import utc_times
from windowpane_dashboard.queries.filters import AuditFilters, Query

Batches = Iterator[list[ExportRow]]

PATH: Final = "export-events"
SIGNATURE: Final = "signature"
_MOMENTS: Final = ("at_from", "at_to")
_KEY: Final = secrets.token_bytes(32)
_NOT_IN_A_NAME: Final = re.compile(r"[^A-Za-z0-9._-]+")
CSV_COLUMNS: Final = ("seq", "at", "session", "revision", "turn", "event", "what", "hash")
_SPREADSHEET_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


class ExportFormat(NamedTuple):
    """One file format."""

    label: str
    media_type: str
    write: Callable[[Batches], Iterator[bytes]]


def json_lines(batches: Batches) -> Iterator[bytes]:
    """Write one JSON object per line: `seq`, `revision`, `hash` and the exact `event`."""
    for batch in batches:
        yield b"".join(map(json_line, batch))


def csv_lines(batches: Batches) -> Iterator[bytes]:
    """Write the rows of the audit page with their whole hash; no cell is a formula to a spreadsheet."""
    yield _csv([CSV_COLUMNS])
    for batch in batches:
        at = utc_times([row.at for row in batch]).dt.strftime("%Y-%m-%dT%H:%M:%S.%fZ").fillna("")
        yield _csv(
            [
                row.seq,
                when,
                _escape_cell(row.session_id),
                row.revision,
                row.turn,
                row.type,
                _description(row),
                row.hash.hex(),
            ]
            for row, when in zip(batch, at, strict=True)
        )


def _csv(rows: Iterator[list[object]] | list[tuple[str, ...]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode(errors="replace")


def _description(row: ExportRow) -> str:
    try:
        return _escape_cell(describe_event(decode(row.body)))
    except EventFormatError as error:
        return _escape_cell(describe_damage(error))


def _escape_cell(cell: str) -> str:
    """Return the cell with a leading quote where a spreadsheet would read a formula."""
    return f"'{cell}" if cell.startswith(_SPREADSHEET_FORMULA) else cell


def parquet(batches: Batches) -> Iterator[bytes]:
    """Write the record's columns and the body as text. Raises `StoreError` where pyarrow is missing."""
    buffer = _WriteBuffer()
    with parquet_writer(buffer) as write:
        for batch in batches:
            write(batch)
            yield buffer.take()
    yield buffer.take()


class _WriteBuffer(io.BytesIO):
    """A file that is only written; `take` returns and clears its content."""

    def take(self) -> bytes:
        written = self.getvalue()
        self.seek(0)
        self.truncate()
        return written

    def close(self) -> None:
        """Do nothing: the last bytes are taken after the writer has closed."""


EXPORT_FORMATS: Final[dict[str, ExportFormat]] = {
    "jsonl": ExportFormat("JSON Lines", "application/jsonl", json_lines),
    "csv": ExportFormat("CSV", "text/csv; charset=utf-8", csv_lines),
    "parquet": ExportFormat("Parquet", "application/vnd.apache.parquet", parquet),
}


# -- addresses --------------------------------------------------------------------------------------------------


def address(filters: AuditFilters, form: str, zone: tzinfo = UTC) -> str:
    """Return the signed address of the events of *filters*, relative to the application; paging is ignored.

    Days are in *zone*; the address holds their first and last moment. With a login, only the visitor of
    this page can open it, and only while they have access.
    """
    query = {**replace(filters, after=0, order=None, dates=None).to_query(), "form": form}
    if filters.dates is not None:
        query |= dict(zip(_MOMENTS, map(repr, filters.dates.bounds(zone)), strict=True))
    return f"{PATH}?{urlencode({**query, SIGNATURE: _signature(query, visitor.current())})}"


def _signature(query: Query, reader: Visitor) -> str:
    signed = urlencode([*sorted(query.items()), ("", reader.key)])
    return hmac.new(_KEY, signed.encode(), "sha256").hexdigest()


def send(request: Request) -> Response:
    """Answer a request for a signed address with its file."""
    query = dict(request.query_params)
    given = query.pop(SIGNATURE, "")
    form = EXPORT_FORMATS.get(query.get("form", ""))
    try:
        who = visitor.of_request(request.cookies)
    except (visitor.LoginRequiredError, visitor.NoAccessError):
        return PlainTextResponse("Sign in on the dashboard, then download from the audit page.", 401)
    if form is None or not hmac.compare_digest(given.encode(), _signature(query, who).encode()):
        return PlainTextResponse(
            "This address is from another run of the dashboard, or of another user. Open the audit page and "
            "download from there.",
            403,
        )
    filters = AuditFilters.from_query(query)
    at_from, at_to = (float(query[name]) if name in query else None for name in _MOMENTS)
    try:
        reader = open_reader(default_store())
    except WindowpaneError as error:
        return PlainTextResponse(str(error), 503)
    projects = who.access.projects
    if filters.project is not None:
        projects = (filters.project,) if projects is None or filters.project in projects else ()
    name = _NOT_IN_A_NAME.sub("_", f"windowpane-{filters.session or 'events'}")[:80]
    return StreamingResponse(
        _file(reader, replace(filters.to_store(limit=0), at_from=at_from, at_to=at_to, projects=projects), form),
        media_type=form.media_type,
        headers={
            "Content-Disposition": f'attachment; filename="{name}.{query["form"]}"',
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "no-store",
        },
    )


def _file(reader: Reader, query: EventFilter, form: ExportFormat) -> Iterator[bytes]:
    with closing(reader):
        # Of chosen projects the page shows what the store holds.
        reads = long_ranges(reader) if query.projects is None else reader
        yield from form.write(reads.export_batches(query))


ROUTES: Final = (Route(f"/{PATH}", send),)
