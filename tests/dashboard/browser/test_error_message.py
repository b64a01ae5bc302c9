"""An unexpected error: the page shows a message, and the traceback is in the output."""

from __future__ import annotations

import sys
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from windowpane.outputs.http.service_discovery import http_status

pytest.importorskip("playwright.sync_api")
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

BROKEN = """
import sys
from pathlib import Path
from windowpane_dashboard.sections import fleet_table, timeline, window
from windowpane_dashboard.server import launch

select_turn, window_section = timeline.select_turn, window.window_section

def fail(*arguments, **options):
    raise ValueError("words of an agent")

def fail_at_turn_12(turn_window):
    return fail() if turn_window.turn == 12 else window_section(turn_window)

fleet_table.fleet_styled = fail
window.window_section = fail_at_turn_12
timeline.select_turn = lambda turn, last: fail() if turn == 11 else select_turn(turn, last)
launch.run(Path(sys.argv[1]), int(sys.argv[2]))
"""


@pytest.fixture
def here(
    site: Callable[..., Any], seen_store: Path, run_server: Callable[..., Any], free_port: Callable[[], int]
) -> Any:
    """A dashboard whose fleet table cannot be drawn, nor turn 12, and in which turn 11 cannot be selected."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    run_server(
        [sys.executable, "-c", BROKEN, seen_store, str(port)],
        ready=lambda: http_status(f"{url}/_stcore/health", timeout_seconds=2) == HTTPStatus.OK,
    )
    return site(seen_store, url=url)


def assert_reported(here: Any, tmp_path: Path, failures: int) -> None:
    """The page shows one message without the error's text, which is in the output with the traceback."""
    expect(here.page.locator(".st-key-unforeseen")).to_have_count(1)
    expect(here.page.locator("[data-testid=stException]")).to_have_count(0)
    here.assert_shows("Something failed here that should not")
    here.assert_shows("the lines about ValueError")
    assert "words of an agent" not in here.page.content()
    log = (tmp_path / "server-0.log").read_text(encoding="utf-8")
    assert log.count("ValueError: words of an agent") == failures
    assert log.count("Traceback (most recent call last)") == failures


def test_a_failed_page_is_reported(here: Any, tmp_path: Path) -> None:
    page = here.page

    page.goto(here.url)

    assert_reported(here, tmp_path, 1)
    here.assert_shows("1 live session, none needs you.")
    here.open("audit")
    here.assert_shows("seq 1 to 100 shown")


def test_a_failed_section_is_reported_in_its_position(here: Any, tmp_path: Path) -> None:
    page = here.open("session", session="refactor-api", turn="10")
    number = page.get_by_role("spinbutton", name="Go to turn")
    number.fill("12")
    number.press("Enter")

    assert_reported(here, tmp_path, 1)
    expect(page.locator(".st-key-window_chart .js-plotly-plot")).to_be_visible()
    page.get_by_role("slider").first.press("ArrowRight")
    page.get_by_role("heading", name="Turn 13:").wait_for()
    here.settle()


def test_a_failed_action_is_reported(here: Any, tmp_path: Path) -> None:
    page = here.open("session", session="refactor-api", turn="10")

    page.get_by_role("slider").first.press("ArrowRight")

    assert_reported(here, tmp_path, 1)
