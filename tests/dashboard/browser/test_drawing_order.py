"""The chart of the session is drawn first, then the sections below it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright.sync_api")
from streamlit.proto.BackMsg_pb2 import BackMsg

pytestmark = pytest.mark.browser

PATIENCE = 60_000
SEEN = """
window.seen = [];
const note = (name, found) => found && !window.seen.includes(name) && window.seen.push(name);
new MutationObserver(() => {
  const chart = document.querySelector(".st-key-window_chart .main-svg");
  note("chart", chart);
  note("turn", [...document.querySelectorAll("h3")].some((heading) => heading.textContent.startsWith("Turn 9:")));
  if (chart && window.top_of_chart === undefined) window.top_of_chart = chart.getBoundingClientRect().top;
}).observe(document, { subtree: true, childList: true });
"""
TOP = "document.querySelector('.st-key-window_chart .main-svg').getBoundingClientRect().top"


def test_the_chart_is_drawn_before_the_sections_below(site: Callable[..., Any], seen_store: Path) -> None:
    here = site(seen_store, fresh=True)
    here.page.add_init_script(SEEN)

    page = here.open("session", session="refactor-api", turn="9")
    page.get_by_role("heading", name="Turn 9:").wait_for(timeout=PATIENCE)
    page.get_by_role("tab", name="Log", exact=True).wait_for(timeout=PATIENCE)

    assert page.evaluate("window.seen") == ["chart", "turn"]
    assert page.evaluate(f"window.top_of_chart - {TOP}") == pytest.approx(0, abs=1)


def test_a_missing_chart_does_not_delay_the_page(site: Callable[..., Any], seen_store: Path) -> None:
    here = site(seen_store, fresh=True)
    here.page.route("**/PlotlyChart*", lambda route: route.abort())

    here.page.goto(f"{here.url}/session?session=refactor-api&turn=9")

    here.page.get_by_role("heading", name="Turn 9:").wait_for(timeout=PATIENCE)
    here.page.get_by_text("In the window").first.wait_for(timeout=PATIENCE)
    assert here.page.locator(".st-key-window_chart .main-svg").count() == 0


def test_a_lost_request_is_repeated(site: Callable[..., Any], seen_store: Path) -> None:
    here, lost = site(seen_store), []

    def connect(socket: Any) -> None:
        server = socket.connect_to_server()

        def on_message(message: Any) -> None:
            if not lost and BackMsg.FromString(message).rerun_script.fragment_id:
                lost.append(message)
            else:
                server.send(message)

        socket.on_message(on_message)
        server.on_message(socket.send)

    here.page.route_web_socket("**/_stcore/stream*", connect)
    here.page.goto(f"{here.url}/session?session=refactor-api&turn=9")

    here.page.get_by_role("heading", name="Turn 9:").wait_for(timeout=PATIENCE)
    assert len(lost) == 1
