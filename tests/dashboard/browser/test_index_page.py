"""A page's document names the server, so no other address is requested."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.sampling import sampled

pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.browser

PAGES = ("", "compare", "trends", "replay", "session", "alerts", "audit")
"""Each address has its own route; `make test` compares all routes with the navigation without a browser."""


def test_a_page_finds_its_server_at_once(site: Callable[..., Any], seen_store: Path) -> None:
    here = site(seen_store)
    refused: list[str] = []
    sockets: list[str] = []
    here.page.on("response", lambda answer: refused.append(answer.url) if answer.status >= 400 else None)
    here.page.on("websocket", lambda socket: sockets.append(socket.url))

    for path in sampled(PAGES, 2):
        page = here.open(path)
        page.get_by_role("link", name="Audit").first.wait_for()

        assert refused == [], path
        assert sockets == [here.url.replace("http", "ws") + "/_stcore/stream"], path
        assert page.url.split("?")[0] == f"{here.url}/{path}"
        sockets.clear()
