"""What is looked at first is there first: the picture, then what stands below it, in its place."""

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
  note("picture", chart);
  note("turn", [...document.querySelectorAll("h3")].some((heading) => heading.textContent.startsWith("Turn 9:")));
  if (chart && window.top_of_picture === undefined) window.top_of_picture = chart.getBoundingClientRect().top;
}).observe(document, { subtree: true, childList: true });
"""
TOP = "document.querySelector('.st-key-window_chart .main-svg').getBoundingClientRect().top"


def test_the_picture_comes_before_what_is_below(site: Callable[..., Any], seen_store: Path) -> None:
    """The turn follows by itself once the picture is painted, unscrolled, and the picture stays in place."""
    here = site(seen_store)
    here.page.add_init_script(SEEN)

    page = here.open("session", session="refactor-api", turn="9")
    page.get_by_role("heading", name="Turn 9:").wait_for(timeout=PATIENCE)
    page.get_by_role("heading", name="Events", exact=True).wait_for(timeout=PATIENCE)

    assert page.evaluate("window.seen") == ["picture", "turn"]
    assert page.evaluate(f"window.top_of_picture - {TOP}") == pytest.approx(0, abs=1)


def test_a_picture_that_does_not_come_keeps_nothing_back(site: Callable[..., Any], seen_store: Path) -> None:
    """Where the browser cannot load what draws the picture, the rest of the page is there all the same."""
    here = site(seen_store)
    here.page.route("**/PlotlyChart*", lambda route: route.abort())

    here.page.goto(f"{here.url}/session?session=refactor-api&turn=9")

    here.page.get_by_role("heading", name="Turn 9:").wait_for(timeout=PATIENCE)
    here.page.get_by_text("In the window").first.wait_for(timeout=PATIENCE)
    assert here.page.locator(".st-key-window_chart .main-svg").count() == 0


def test_what_was_asked_and_lost_is_asked_again(site: Callable[..., Any], seen_store: Path) -> None:
    """The page comes whole, also where the first request for what stands below the picture leads to nothing."""
    here, lost = site(seen_store), []

    def connect(socket: Any) -> None:
        server = socket.connect_to_server()

        def asks(message: Any) -> None:
            if not lost and BackMsg.FromString(message).rerun_script.fragment_id:
                lost.append(message)
            else:
                server.send(message)

        socket.on_message(asks)
        server.on_message(socket.send)

    here.page.route_web_socket("**/_stcore/stream*", connect)
    here.page.goto(f"{here.url}/session?session=refactor-api&turn=9")

    here.page.get_by_role("heading", name="Turn 9:").wait_for(timeout=PATIENCE)
    assert len(lost) == 1
