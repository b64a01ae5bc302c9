"""An unexpected error: the page shows a message, and the traceback is in the output."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from tests.servers.postgres import free_port

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


@dataclass(frozen=True)
class Broken:
    """A dashboard whose fleet table cannot be drawn, nor turn 12, and in which turn 11 cannot be selected."""

    url: str
    output: Path

    def answers(self) -> bool:
        return http_status(f"{self.url}/_stcore/health", timeout_seconds=2) == HTTPStatus.OK


@pytest.fixture(scope="module")
def broken(seen_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broken]:
    port = free_port()
    server = Broken(f"http://127.0.0.1:{port}", tmp_path_factory.mktemp("broken") / "output")
    with server.output.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", BROKEN, seen_store, str(port)], stdout=output, stderr=output
        )
        deadline = time.monotonic() + 60
        while not server.answers():
            assert process.poll() is None, server.output.read_text()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield server
        process.terminate()
        process.wait(timeout=15)


@pytest.fixture
def here(site: Callable[..., Any], seen_store: Path, broken: Broken) -> Any:
    broken.output.write_bytes(b"")
    here = site(seen_store, url=broken.url)
    here.page.set_viewport_size({"width": 1440, "height": 900})  # a page below 1360 px is drawn a second time
    return here


def assert_reported(here: Any, broken: Broken) -> None:
    """The page shows one message without the error's text, which is in the output with the traceback."""
    expect(here.page.locator(".st-key-unforeseen")).to_have_count(1)
    expect(here.page.locator("[data-testid=stException]")).to_have_count(0)
    here.assert_shows("Something failed here that should not")
    here.assert_shows("the lines about ValueError")
    assert "words of an agent" not in here.page.content()
    output = broken.output.read_text(encoding="utf-8")
    assert output.count("ValueError: words of an agent") == 1
    assert output.count("Traceback (most recent call last)") == 1


def test_a_failed_page_is_reported(here: Any, broken: Broken) -> None:
    page = here.page

    page.goto(here.url)

    assert_reported(here, broken)
    here.assert_shows("1 live session, none in red or with a warning.")
    here.open("audit")
    here.assert_shows("seq 1 to 100 shown")


def test_a_failed_section_is_reported_in_its_position(here: Any, broken: Broken) -> None:
    page = here.open("session", session="refactor-api", turn="10")
    number = page.get_by_role("spinbutton", name="Go to turn")
    number.fill("12")
    number.press("Enter")

    assert_reported(here, broken)
    expect(page.locator(".st-key-window_chart .js-plotly-plot")).to_be_visible()
    page.get_by_role("slider").first.press("ArrowRight")
    page.get_by_role("heading", name="Turn 13:").wait_for()
    here.settle()


def test_a_failed_action_is_reported(here: Any, broken: Broken) -> None:
    page = here.open("session", session="refactor-api", turn="10")

    page.get_by_role("slider").first.press("ArrowRight")

    assert_reported(here, broken)
