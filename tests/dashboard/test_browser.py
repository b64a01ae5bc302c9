"""Every page in a real browser, on real recordings and on a hostile store."""

from __future__ import annotations

import contextlib
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

from windowpane.digests import keyed_digester
from windowpane.limits import PriceCatalogue
from windowpane.sources.importer import import_paths
from windowpane.sources.ingest import Ingest
from windowpane.sources.registry import all_readers
from windowpane.store.base import SessionFilter
from windowpane.store.sqlite import SqliteStore
from windowpane.tokens.counters import counter_for

if TYPE_CHECKING:
    from playwright.sync_api import Browser, FloatRect, Locator, Page

PlaywrightTimeout = pytest.importorskip("playwright.sync_api").TimeoutError
pytestmark = pytest.mark.browser

SERVE = """
import sys
from pathlib import Path
from windowpane_dashboard.launch import run
run(Path(sys.argv[1]), int(sys.argv[2]))
"""
RECORDINGS = ("claude_code/compact_small_a6", "pi/large-session", "swe_agent/marshmallow_fc_replace")
SETTLED = "[data-testid=stApp][data-test-script-state=notRunning]"


@pytest.fixture(scope="session")
def browser(require_server: Callable[[str], Path]) -> Iterator[Browser]:
    """Debian's Chromium, without a window."""
    program = require_server("chromium")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=str(program), args=["--no-sandbox"])
        yield opened
        opened.close()


@dataclass
class Site:
    """A running dashboard, seen through one browser page."""

    url: str
    page: Page
    outside: list[str]
    """Requests that would have left the machine."""

    def open(self, path: str = "", **query: str) -> Page:
        """Open a page and wait until it is drawn."""
        self.page.goto(f"{self.url}/{path}" + (f"?{urlencode(query)}" if query else ""))
        self.settle()
        return self.page

    def settle(self) -> None:
        """Wait until the page is drawn, and see that nothing went wrong."""
        self.page.wait_for_selector(SETTLED, timeout=60_000)
        assert self.page.locator("[data-testid=stException]").count() == 0

    def words(self) -> str:
        return self.page.locator("[data-testid=stMain]").inner_text()


@pytest.fixture
def site(browser: Browser, run_server: Any, free_port: Callable[[], int]) -> Iterator[Callable[..., Site]]:
    """Serve a store and open it in a fresh browser context; the second call opens another store."""
    contexts = []

    def serve(store: Path, *, scheme: Any = "light", width: int = 1280, height: int = 800) -> Site:
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        run_server([sys.executable, "-c", SERVE, store, str(port)], ready=lambda: _answers(url))
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        outside: list[str] = []
        page.on(
            "request",
            lambda sent: None if sent.url.startswith((url, "data:", "blob:")) else outside.append(sent.url),
        )
        return Site(url, page, outside)

    yield serve
    for context in contexts:
        context.close()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/_stcore/health", timeout=2) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False


@pytest.fixture(scope="session")
def recorded(sessions_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a compaction, a long session and a session without a known limit."""
    paths = [
        path for name in RECORDINGS for path in sorted((sessions_dir / name).parent.glob(Path(name).name + "*"))
    ]
    target = tmp_path_factory.mktemp("recorded") / "windowpane.db"
    store = SqliteStore(target)
    ingest = Ingest(digest=keyed_digester(b"k" * 32), counter_for=counter_for, catalogue=PriceCatalogue())
    reports = import_paths(paths, store, ingest=ingest, readers=all_readers())
    store.close()
    assert sum(bool(report.outcomes) for report in reports) == len(RECORDINGS)
    return target


@pytest.mark.parametrize(("scheme", "size"), [("light", (1280, 800)), ("dark", (1440, 900))])
def test_every_page_opens_on_real_recordings(
    site: Callable[..., Site], recorded: Path, tmp_path: Path, scheme: str, size: tuple[int, int]
) -> None:
    """Fleet, each session and audit are drawn without an error, and nothing is fetched from elsewhere."""
    store = SqliteStore(recorded)
    sessions = store.sessions(SessionFilter())
    store.close()
    here = site(recorded, scheme=scheme, width=size[0], height=size[1])

    page = here.open()
    page.locator("[data-testid=stDataFrame] canvas").first.wait_for()
    assert f"{len(sessions)} sessions" in here.words()
    for row in sessions:
        page = here.open("session", session=row.session_id)
        page.locator(".js-plotly-plot .main-svg").first.wait_for(timeout=60_000)
        words = here.words()
        for part in ("Velocity", "In the window", "Had left by now", "What happened"):
            assert part in words, f"{row.session_id} lacks {part}"
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    page = here.open("audit")
    page.get_by_role("button", name="Verify chain").click()
    page.get_by_text("the chain is intact").wait_for()
    page.screenshot(path=tmp_path / f"audit-{scheme}.png")
    assert here.outside == []


def test_a_deep_link_opens_the_turn_and_a_click_changes_it(
    site: Callable[..., Site], small_store: SqliteStore, tmp_path: Path
) -> None:
    """The address names a turn; a click into the picture and an event mark each select theirs."""
    here = site(small_store.path)
    page = here.open("session", session="refactor-api", turn="9")
    page.get_by_role("heading", name="Turn 9:").wait_for()
    plot = page.locator(".js-plotly-plot").first

    def click_pane() -> None:
        pane = _box(plot.locator(".nsewdrag").first)
        page.mouse.click(pane["x"] + pane["width"] * 0.5, pane["y"] + pane["height"] * 0.6)

    def click_mark() -> None:
        mark = _box(plot.locator(".textpoint", has_text="K").first)
        page.mouse.click(mark["x"] + mark["width"] / 2, mark["y"] + mark["height"] / 2)

    _until_heading(page, "Turn 14:", click_pane)
    assert "turn=14" in page.url
    _until_heading(page, "Turn 16:", click_mark)
    here.settle()
    page.screenshot(path=tmp_path / "turn-16.png")


def _box(place: Locator) -> FloatRect:
    place.scroll_into_view_if_needed()
    box = place.bounding_box()
    assert box is not None
    return box


def _until_heading(page: Page, name: str, act: Callable[[], None]) -> None:
    """Do it until its effect is there: a figure that is still being laid out moves away from the pointer."""
    heading = page.get_by_role("heading", name=name)
    for _ in range(8):
        act()
        with contextlib.suppress(PlaywrightTimeout):
            heading.wait_for(timeout=4_000)
            return
    pytest.fail(f"{name} did not appear")


def test_the_slider_obeys_the_keyboard(site: Callable[..., Site], small_store: SqliteStore) -> None:
    """The arrow keys move the turn, and everything below follows."""
    here = site(small_store.path)
    page = here.open("session", session="refactor-api", turn="9")
    page.get_by_role("heading", name="Turn 9:").wait_for()

    page.get_by_role("slider").first.focus()
    page.keyboard.press("ArrowRight")

    page.get_by_role("heading", name="Turn 10:").wait_for()


def test_hostile_names_stay_text(site: Callable[..., Site], empty_store: SqliteStore, builders: Any) -> None:
    """Scripts do not run, links and pictures are not made, on any page."""
    empty_store.append(builders.hostile(start=time.time() - 800))
    here = site(empty_store.path)

    for path in ("", "session", "audit"):
        page = here.open(path)
        page.wait_for_selector("[data-testid=stDataFrame] canvas", timeout=60_000)
        assert page.title() == "Windowpane"
        assert page.locator("a[href*='127.0.0.1:9']").count() == 0
        assert page.locator("[data-testid=stMain] strong", has_text="bold").count() == 0
        assert page.locator("[data-testid=stMain] script").count() == 0
    assert here.outside == []


def test_an_empty_store_says_what_to_do_in_the_browser(
    site: Callable[..., Site], empty_store: SqliteStore
) -> None:
    """No table and no error, but the commands."""
    here = site(empty_store.path)

    for path in ("", "session", "audit"):
        page = here.open(path)
        page.get_by_text("windowpane import").wait_for()
        assert "windowpane demo" in here.words()
