"""The document that a browser loads first: Streamlit's own, with the address of the server added.

Streamlit's document looks for its server below its own address, at `session/_stcore/health`, is refused, and
waits before it looks one level higher. Each page here lies directly below the server, whatever prefix a proxy
adds, so its document names that address. A Streamlit that ignores it searches as before.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route
from streamlit import file_util

PAGES: Final = ("session", "compare", "trends", "replay", "alerts", "search", "audit")
"""Pages with a path; the fleet page is at the root."""
_FIRST_SCRIPT: Final = '<script type="module"'
_SERVER: Final = (
    '<script>window.__streamlit = { BACKEND_BASE_URL: new URL(".", location.href).href }</script>\n    '
)


def send(_request: Request) -> HTMLResponse:
    """Answer with the document of a page."""
    return HTMLResponse(document(), headers={"Cache-Control": "no-cache"})


@cache
def document() -> str:
    """Return Streamlit's document with the server's address before its first script, if it has one."""
    index = Path(file_util.get_static_dir()) / "index.html"
    return index.read_text(encoding="utf-8").replace(_FIRST_SCRIPT, _SERVER + _FIRST_SCRIPT, 1)


ROUTES: Final = tuple(Route(f"/{page}", send) for page in PAGES)
