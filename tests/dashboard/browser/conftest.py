"""A browser, a running dashboard seen through it, and stores of real recordings."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

from windowpane.core.digests import keyed_digester
from windowpane.core.redaction import redact
from windowpane.core.store_names import StoreName
from windowpane.models.catalog import PackagedCatalog
from windowpane.models.tokens import counter_for
from windowpane.sources.imports.importer import import_paths
from windowpane.sources.transcripts.discovery import all_readers
from windowpane.sources.transcripts.playback_settings import PlaybackSettings
from windowpane.store.embedded import SqliteStore
from windowpane_dashboard.server.background import serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page, WebSocket

RECORDINGS = (
    "claude_code/compact_small_a6", "claude_code/compact_micro_76", "pi/large-session",
    "swe_agent/marshmallow_fc_replace",
)  # fmt: skip
SETTLED = "[data-testid=stApp][data-test-connection-state=CONNECTED][data-test-script-state=notRunning]"
UNFINISHED = (
    "[data-testid=stSkeleton], [data-stale=true], .st-key-below_anchor,"
    " .st-key-window_chart:not(:has(.main-svg))"  # its library is loaded last
)
"""Placeholders of parts that are not drawn yet, and parts that are about to be drawn again."""
FAILED = "[data-testid=stException], .st-key-unforeseen"
SERVERS = 5
"""Servers that run at once, as many as the stores of the tasks: starting one takes seconds."""
CHROMIUM = (
    "--no-sandbox",
    "--process-per-site",  # one process draws all pages of a site: it has the scripts compiled
    "--disable-gpu",
    "--js-flags=--single-threaded,--min-semi-space-size=64",  # the tests beside these need the other cores
)
PATIENCE = 60_000
"""Milliseconds; a machine that runs other tests beside these draws slowly."""


@dataclass
class Talk:
    """The requests of a page, and whether the last one is answered."""

    requested: bool = True
    """True while a request is not answered; a page sends one as soon as it opens."""
    drawing: bool = False

    def listen(self, socket: WebSocket) -> None:
        """Follow one connection of the page."""
        socket.on("framesent", self._sent)
        socket.on("framereceived", self._received)

    def _sent(self, frame: bytes | str) -> None:
        from streamlit.proto.BackMsg_pb2 import BackMsg

        if isinstance(frame, bytes) and BackMsg.FromString(frame).WhichOneof("type") == "rerun_script":
            self.requested, self.drawing = True, False

    def _received(self, frame: bytes | str) -> None:
        from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

        message = ForwardMsg.FromString(frame) if isinstance(frame, bytes) else ForwardMsg()
        if message.WhichOneof("type") == "new_session":
            self.drawing = True
        elif message.WhichOneof("type") == "script_finished" and self.drawing:
            self.requested = message.script_finished == ForwardMsg.FINISHED_EARLY_FOR_RERUN


@dataclass
class Site:
    """A running dashboard, seen through one browser page."""

    url: str
    page: Page
    outside: list[str]
    """Requests to other machines."""
    talk: Talk = field(default_factory=Talk)

    def __post_init__(self) -> None:
        self.page.set_default_timeout(PATIENCE)
        self.page.on("websocket", self.talk.listen)

    def open(self, path: str = "", **query: str) -> Page:
        """Open a page and wait until it is drawn."""
        self.talk.requested = True
        self.page.goto(f"{self.url}/{path}" + (f"?{urlencode(query)}" if query else ""))
        self.settle()
        return self.page

    def settle(self) -> None:
        """Wait until the page is drawn, and assert that nothing failed.

        All requests of the page are answered then. After a widget that waits before it sends, such as a slider or
        a table, wait for its effect first.
        """
        self.page.evaluate("new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
        self.waits(self._drawn, "the page has its answer and is drawn")
        assert self.page.locator(FAILED).count() == 0

    def _drawn(self) -> bool:
        settled, unfinished = self.page.locator(SETTLED), self.page.locator(UNFINISHED)
        return not self.talk.requested and settled.count() == 1 and unfinished.count() == 0

    def _state(self) -> str:
        """Describe the unfinished parts, for a failure message."""
        script = self.page.locator("[data-testid=stApp]").get_attribute("data-test-script-state")
        pending = [
            one.evaluate("part => part.outerHTML.slice(0, 200)") for one in self.page.locator(UNFINISHED).all()
        ]
        return f"script {script}, {self.talk}, unfinished {pending}"

    def waits(self, condition: Callable[[], bool], what: str) -> None:
        """Poll until *condition* is true, less and less often: on a busy machine each poll delays the page."""
        deadline, pause = time.monotonic() + PATIENCE / 1_000, 25.0
        while not condition():
            assert time.monotonic() < deadline, f"not so: {what}; {self._state()}"
            self.page.wait_for_timeout(pause)
            pause = min(1.3 * pause, 200)

    def assert_shows(self, text: str | re.Pattern[str]) -> None:
        """Wait until the page shows this text."""
        from playwright.sync_api import expect

        main = self.page.locator("[data-testid=stMain]")
        expect(main).to_contain_text(text, use_inner_text=True, timeout=PATIENCE)

    def sections(self) -> Iterator[str]:
        """Open each section of each tab of the session page, and yield its name."""
        tabs = self.page.get_by_role("tab")
        for tab in tabs.all():
            tab.click()
            self.settle()
            choices = self.page.locator(".st-key-sections").get_by_role("radio")
            for choice in choices.all():
                choice.click()
                self.settle()
                yield choice.inner_text()
            if not choices.count():
                yield tab.inner_text()

    def assert_at(self, address: str) -> None:
        """Wait until the address is this, with `**` for anything."""
        self.page.wait_for_url(address)

    def text(self) -> str:
        """Return the text of the settled page."""
        self.settle()
        return self.page.locator("[data-testid=stMain]").inner_text()


@dataclass
class Servers:
    """Dashboards on stores; those of the stores requested last keep running."""

    running: dict[StoreName, tuple[str, ExitStack]] = field(default_factory=dict)
    ports: list[int] = field(default_factory=list)
    """Ports of stopped servers, used again: a browser has the scripts of their addresses."""

    def url(self, store: StoreName) -> str:
        """Return the address of the dashboard on this store."""
        kept = self.running.pop(store, None)
        if kept is None:
            while len(self.running) >= SERVERS:
                self.stop(next(iter(self.running)))
            server = ExitStack()
            port = self.ports.pop() if self.ports else 0
            kept = server.enter_context(serving(store, port=port)), server
        self.running[store] = kept
        return kept[0]

    def stop(self, store: StoreName) -> None:
        """Stop the server of this store if it runs."""
        if store in self.running:
            url, server = self.running.pop(store)
            server.close()
            self.ports.append(int(url.rpartition(":")[2]))


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    """The dashboards that browsers open."""
    opened = Servers()
    yield opened
    for store in list(opened.running):
        opened.stop(store)


@dataclass
class Windows:
    """Pages of one browser: each is new, and those of one kind have the loaded scripts in common.

    A browser in which nothing is loaded spends most of a page's time on the scripts of Streamlit. A page that
    stays open keeps the process in which they are compiled.
    """

    browser: Browser
    shared: dict[tuple[str, str], BrowserContext] = field(default_factory=dict)

    def open(self, url: str, *, scheme: Any, zone: str, fresh: bool) -> Page:
        """Return a page without cookies and stored values; a *fresh* one also has nothing loaded."""
        if fresh:
            return self._context(scheme, zone).new_page()
        context = self.shared.get((scheme, zone))
        if context is None:
            context = self._context(scheme, zone)
            self.shared[scheme, zone] = context
            context.new_page().goto(f"{url}/_stcore/health")
        context.clear_cookies()
        page = context.new_page()
        stored = {"origin": url, "storageTypes": "local_storage,indexeddb"}
        context.new_cdp_session(page).send("Storage.clearDataForOrigin", stored)
        return page

    def _context(self, scheme: Any, zone: str) -> BrowserContext:
        """Make a context whose pages do not animate: without a GPU that takes a processor."""
        return self.browser.new_context(color_scheme=scheme, timezone_id=zone, reduced_motion="reduce")

    def close(self, page: Page) -> None:
        """Close a page, and the context that no other shares."""
        if page.context in self.shared.values():
            page.close()
        else:
            page.context.close()


class Chromium:
    """Debian's Chromium, without a window, from the first test that opens a page to the last of this folder."""

    def __init__(self) -> None:
        self._windows: Windows | None = None
        self._running = ExitStack()

    def windows(self, program: Path) -> Windows:
        """Return the pages of the browser; it is started if it does not run."""
        if self._windows is None:
            playwright = pytest.importorskip("playwright.sync_api")
            playwright.expect.set_options(timeout=PATIENCE)
            driver = self._running.enter_context(playwright.sync_playwright())
            browser = driver.chromium.launch(executable_path=str(program), args=list(CHROMIUM))
            self._running.callback(browser.close)
            self._windows = Windows(browser)
        return self._windows

    def close(self) -> None:
        """Stop the browser if it runs."""
        self._windows = None
        self._running.close()


_CHROMIUM = Chromium()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> Iterator[None]:
    """Stop the browser after the last of these tests.

    Playwright keeps an event loop running, beside which other tests could not run theirs.
    """
    yield
    if nextitem is None or Path(__file__).parent not in nextitem.path.parents:
        _CHROMIUM.close()


@pytest.fixture
def windows(require_server: Callable[[str], Path]) -> Windows:
    """The pages of the browser."""
    return _CHROMIUM.windows(require_server("chromium"))


@pytest.fixture
def site(windows: Windows, servers: Servers, tmp_path: Path) -> Iterator[Callable[..., Site]]:
    """Serve a store and open it in a new page."""
    pages: list[Page] = []
    stores: list[StoreName] = []

    def serve(
        store: StoreName,
        *,
        scheme: Any = "light",
        width: int = 1280,
        height: int = 800,
        zone: str = "UTC",
        url: str = "",
        fresh: bool = False,
    ) -> Site:
        url = url or servers.url(store)
        page = windows.open(url, scheme=scheme, zone=zone, fresh=fresh)
        page.set_viewport_size({"width": width, "height": height})
        pages.append(page)
        stores.append(store)
        outside: list[str] = []
        page.on(
            "request",
            lambda sent: None if sent.url.startswith((url, "data:", "blob:")) else outside.append(sent.url),
        )
        return Site(url, page, outside)

    yield serve
    for page in pages:
        windows.close(page)
    for store in stores:
        if tmp_path in Path(str(store)).parents:  # no other test has it
            servers.stop(store)


@pytest.fixture(scope="session")
def recorded(sessions_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a compaction, a long session and a session without a known limit."""
    paths = [
        path for name in RECORDINGS for path in sorted((sessions_dir / name).parent.glob(Path(name).name + "*"))
    ]
    target = tmp_path_factory.mktemp("recorded") / "windowpane.db"
    store = SqliteStore(target)
    playback = PlaybackSettings(
        digest=keyed_digester(b"k" * 32), counter_for=counter_for, catalog=PackagedCatalog()
    )
    reports = import_paths(paths, store, playback=playback, readers=all_readers())
    store.close()
    assert sum(bool(report.outcomes) for report in reports) == len(RECORDINGS)
    return target


@pytest.fixture(scope="session")
def captured(sessions_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a compacted session and its texts, redacted and indexed."""
    target = tmp_path_factory.mktemp("captured") / "windowpane.db"
    store = SqliteStore(target, capture=True, redact=lambda text: redact(text).text)
    playback = PlaybackSettings(
        digest=keyed_digester(b"k" * 32), counter_for=counter_for, catalog=PackagedCatalog()
    )
    paths = sorted((sessions_dir / "claude_code").glob("compact_micro_76*"))
    import_paths(paths, store, playback=playback, readers=all_readers())
    while store.index_text():
        pass
    store.close()
    return target


@pytest.fixture(scope="session")
def demo_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of `windowpane demo`: recorded sessions with their content, and two of them managed again."""
    path = tmp_path_factory.mktemp("demo") / "windowpane.db"
    command = [sys.executable, "-m", "windowpane", "demo", "--once", "--store", str(path)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return path
