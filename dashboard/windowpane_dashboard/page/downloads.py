"""Downloads of filtered events: an address of the dashboard's own server that streams the file.

Streamlit's own downloads are held in memory whole; these are sent while they are read. The pages are protected by
Streamlit's check of where a connection comes from, which does not look at other addresses. So each address here
carries a signature that only a page of this process can give.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Iterator
from contextlib import closing
from typing import Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from windowpane.config.paths import default_store
from windowpane.exceptions import WindowpaneError
from windowpane.store.interface import EventFilter
from windowpane.store.reads import SqliteReader
from windowpane_dashboard.queries.exports import FORMS, Form
from windowpane_dashboard.queries.filters import AuditFilters, Query

PATH: Final = "export-events"
SIGNATURE: Final = "signature"
_KEY: Final = secrets.token_bytes(32)
_NOT_IN_A_NAME: Final = re.compile(r"[^A-Za-z0-9._-]+")


def address(filters: AuditFilters, form: str) -> str:
    """Where a page's visitor gets the events of *filters*, relative to the application; paging is left out."""
    query = {**_whole(filters).to_query(), "form": form}
    return f"{PATH}?{urlencode({**query, SIGNATURE: _signature(query)})}"


def _whole(filters: AuditFilters) -> AuditFilters:
    return AuditFilters(filters.session, filters.types, filters.turn_from, filters.turn_to, filters.text)


def _signature(query: Query) -> str:
    return hmac.new(_KEY, urlencode(sorted(query.items())).encode(), "sha256").hexdigest()


def send(request: Request) -> Response:
    """The file that a signed address names."""
    query = dict(request.query_params)
    given = query.pop(SIGNATURE, "")
    form = FORMS.get(query.get("form", ""))
    if form is None or not hmac.compare_digest(given.encode(), _signature(query).encode()):
        return PlainTextResponse(
            "This address is from another run of the dashboard. Open the audit page and download from there.", 403
        )
    filters = AuditFilters.from_query(query)
    try:
        reader = SqliteReader(default_store())
    except WindowpaneError as error:
        return PlainTextResponse(str(error), 503)
    name = _NOT_IN_A_NAME.sub("_", f"windowpane-{filters.session or 'events'}")[:80]
    return StreamingResponse(
        _file(reader, filters.to_store(limit=0), form),
        media_type=form.media_type,
        headers={
            "Content-Disposition": f'attachment; filename="{name}.{query["form"]}"',
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "no-store",
        },
    )


def _file(reader: SqliteReader, query: EventFilter, form: Form) -> Iterator[bytes]:
    with closing(reader):
        yield from form.write(reader.export_batches(query))


ROUTES: Final = (Route(f"/{PATH}", send),)
