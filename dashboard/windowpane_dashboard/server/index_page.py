"""The document that a browser loads first: Streamlit's own, told where the server is.

Streamlit's document looks for its server below its own address, at `session/_stcore/health`, is refused, and
waits before it looks one step higher. Each page of ours lies directly below the server, so its document says so,
whatever prefix a proxy has put before. Where Streamlit does not listen to that, it looks as ever.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route
from streamlit import file_util

PAGES: Final = ("session", "compare", "replay", "alerts", "audit")
"""Those with an address of their own; the fleet page's is the server's."""
_FIRST_SCRIPT: Final = '<script type="module"'
_SERVER: Final = (
    '<script>window.__streamlit = { BACKEND_BASE_URL: new URL(".", location.href).href }</script>\n    '
)


def send(_request: Request) -> HTMLResponse:
    """The document of a page."""
    return HTMLResponse(document(), headers={"Cache-Control": "no-cache"})


@cache
def document() -> str:
    """Streamlit's document that names the server; unchanged where it holds no script to say it to."""
    index = Path(file_util.get_static_dir()) / "index.html"
    return index.read_text(encoding="utf-8").replace(_FIRST_SCRIPT, _SERVER + _FIRST_SCRIPT, 1)


ROUTES: Final = tuple(Route(f"/{page}", send) for page in PAGES)
