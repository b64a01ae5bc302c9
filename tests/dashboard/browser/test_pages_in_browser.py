"""Every page in a real browser, on real recordings and on a hostile store."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.sampling import sampled

from windowpane.store.embedded import SqliteStore
from windowpane.store.filters import SessionFilter

if TYPE_CHECKING:
    from playwright.sync_api import FloatRect, Locator, Page

PlaywrightTimeout = pytest.importorskip("playwright.sync_api").TimeoutError
pytestmark = pytest.mark.browser

EMPTY_PAGES = ("session", "", "replay", "compare", "trends", "alerts", "audit")


@pytest.mark.parametrize(
    ("scheme", "size"), [("light", (1280, 800)), pytest.param("dark", (1440, 900), marks=pytest.mark.matrix)]
)
def test_every_page_opens_on_real_recordings(
    site: Callable[..., Any], recorded: Path, scheme: str, size: tuple[int, int]
) -> None:
    store = SqliteStore(recorded)
    sessions = store.sessions(SessionFilter())
    store.close()
    here = site(recorded, scheme=scheme, width=size[0], height=size[1])

    page = here.open()
    page.locator("[data-testid=stDataFrame] canvas").first.wait_for()
    here.assert_shows(f"{len(sessions)} sessions")
    for row in sampled(sessions, 1):
        page = here.open("session", session=row.session_id)
        page.locator(".js-plotly-plot .main-svg").first.wait_for()
        for part in ("Lost or contradicted", "In the window", "Removed by now", "Log"):
            here.assert_shows(part)
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert here.outside == []


def test_the_selected_turn_is_on_the_first_screen_and_a_session_on_three(
    site: Callable[..., Any], demo_store: Path
) -> None:
    here = site(demo_store, width=1280, height=800)
    page = here.open("session", session="pi-managed-8k")
    page.get_by_text("Lost or contradicted").wait_for()

    for part in (".st-key-window_chart", "[data-testid=stSlider]", ".strip .blocks"):
        box = _box(page.locator(part).first)
        assert box["y"] + box["height"] <= 800, part

    for name in ("Losses", "Cost", "Log"):
        page.get_by_role("tab", name=name, exact=True).click()
        here.settle()
        height = page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight")
        assert height <= 3 * 800, name


def test_a_deep_link_opens_the_turn_and_a_click_changes_it(site: Callable[..., Any], seen_store: Path) -> None:
    """After the turn was moved away otherwise, the mark that was clicked last brings it back with one click."""
    here = site(seen_store)
    page = here.open("session", session="refactor-api", turn="9")
    page.get_by_role("heading", name="Turn 9:").wait_for()
    plot = page.locator(".js-plotly-plot").first

    def click_pane() -> None:
        pane = _box(plot.locator(".nsewdrag").first)
        page.mouse.click(pane["x"] + pane["width"] * 0.5, pane["y"] + pane["height"] * 0.6)

    def click_mark() -> None:
        uid = plot.evaluate("plot => plot._fullData.find(trace => trace.name === 'needed again').uid")
        mark = _box(plot.locator(f".trace{uid} path.point").first)
        page.mouse.click(mark["x"] + mark["width"] / 2, mark["y"] + mark["height"] / 2)

    _until_heading(page, "Turn 15:", click_pane)
    here.assert_at("**turn=15")
    _until_heading(page, "Turn 20:", click_mark)
    here.settle()
    for _ in range(2):
        page.get_by_role("slider").first.press("ArrowRight")
        page.get_by_role("heading", name="Turn 21:").wait_for()
        here.settle()

        click_mark()

        page.get_by_role("heading", name="Turn 20:").wait_for()
        here.settle()
    here.assert_at("**turn=20")


FRAMES = """() => new Promise(resolve => {
  const seen = [];
  const look = () => {
    const line = document.querySelector(".st-key-window_chart .turn-line");
    seen.push(line ? line.dataset.turn : "none");
    seen.length < 60 ? requestAnimationFrame(look) : resolve(seen);
  };
  look();
})"""


def test_the_line_of_the_turn_stands_still(site: Callable[..., Any], seen_store: Path) -> None:
    here = site(seen_store)
    page = here.open("session", session="refactor-api", turn="9")
    for turn in (10, 11, 12):
        page.get_by_role("slider").first.press("ArrowRight")
        page.get_by_role("heading", name=f"Turn {turn}:").wait_for()
        here.settle()

    assert set(page.evaluate(FRAMES)) == {"12"}


def _box(position: Locator) -> FloatRect:
    position.scroll_into_view_if_needed()
    box = position.bounding_box()
    assert box is not None
    return box


def _until_heading(page: Page, name: str, act: Callable[[], None]) -> None:
    """Do it until its effect is there: a chart that is still being laid out moves away from the pointer."""
    heading = page.get_by_role("heading", name=name)
    for _ in range(8):
        act()
        with contextlib.suppress(PlaywrightTimeout):
            heading.wait_for(timeout=8_000)
            return
    pytest.fail(f"{name} did not appear")


@pytest.mark.matrix
def test_an_empty_store_shows_what_to_do_in_the_browser(
    site: Callable[..., Any], empty_store: SqliteStore
) -> None:
    """`make test` looks at some of the pages without a browser."""
    here = site(empty_store.path)

    for path in EMPTY_PAGES:
        page = here.open(path)
        page.get_by_text("windowpane import").wait_for()
        here.assert_shows("windowpane demo")
