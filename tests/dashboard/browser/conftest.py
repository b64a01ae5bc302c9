"""A browser, a running dashboard seen through it, and stores of real recordings."""

from __future__ import annotations

import subprocess
import sys
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
from windowpane.store.sqlite import SqliteStore
from windowpane.tokens.counters import counter_for

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SERVE = """
import sys
from pathlib import Path
from windowpane_dashboard.launch import run
run(Path(sys.argv[1]), int(sys.argv[2]))
"""
RECORDINGS = (
    "claude_code/compact_small_a6", "claude_code/compact_micro_76", "pi/large-session",
    "swe_agent/marshmallow_fc_replace",
)  # fmt: skip
SETTLED = "[data-testid=stApp][data-test-script-state=notRunning]"


@pytest.fixture(scope="module")
def browser(require_server: Callable[[str], Path]) -> Iterator[Browser]:
    """Debian's Chromium, without a window.

    No longer than a module: Playwright keeps an event loop running, in which other tests could run no loop of
    their own.
    """
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

    def serve(
        store: Path, *, scheme: Any = "light", width: int = 1280, height: int = 800, zone: str = "UTC"
    ) -> Site:
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        run_server([sys.executable, "-c", SERVE, store, str(port)], ready=lambda: _answers(url))
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, timezone_id=zone
        )
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


@pytest.fixture(scope="session")
def demo_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of `windowpane demo`: recorded sessions with their content, and two of them managed again."""
    path = tmp_path_factory.mktemp("demo") / "windowpane.db"
    command = [sys.executable, "-m", "windowpane", "demo", "--once", "--store", str(path)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return path
