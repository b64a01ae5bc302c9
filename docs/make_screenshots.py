"""Take the screenshots of README and documentation: starts the dashboard on a store and photographs its pages.

    python docs/make_screenshots.py ~/demo/windowpane.db [--session ID] [--turn N] [--out docs/images]

Needs the development dependencies and a Chromium.
"""

from __future__ import annotations

import argparse
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlencode

from playwright.sync_api import Browser, Page, sync_playwright

from windowpane.evaluation.replay import ReplaySetup, StoreSource, combine_setups, run_matrix, to_stored_replay
from windowpane.store.embedded import SqliteStore
from windowpane.store.filters import SessionFilter
from windowpane_dashboard.server.background import serving

MAXIMUM_BYTES = 300_000


@dataclass(frozen=True, slots=True)
class Shot:
    """One screenshot: which page, in which theme, how large."""

    name: str
    path: str
    scheme: Literal["light", "dark"] = "light"
    height: int = 800
    scroll: int = 0


def main() -> None:
    """Take every screenshot, and fail where one would be too large."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", type=Path)
    parser.add_argument("--session")
    parser.add_argument("--turn", type=int)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "images")
    requested = parser.parse_args()
    query = {"session": requested.session or eventful_session(requested.store)}
    if requested.turn is not None:
        query["turn"] = str(requested.turn)
    session = f"session?{urlencode(query)}"
    pair = urlencode(dict(zip(("one", "other"), compared(requested.store), strict=False)))
    shots = [
        Shot("fleet", ""),
        Shot("session", session),
        Shot("session-dark", session, scheme="dark"),
        Shot("window", session, scroll=560),
        Shot("compression", f"{session}&tab=compressions", scroll=560, height=1000),
        Shot("compare", f"compare?{pair}", height=1180),
        Shot("replay", f"replay?id={replayed(requested.store, query['session'])}", height=1120),
        Shot("alerts-dark", "alerts", scheme="dark", height=1000),
        Shot("audit", "audit"),
    ]
    requested.out.mkdir(parents=True, exist_ok=True)
    with serving(requested.store) as url, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        for shot in shots:
            print(take(browser, url, shot, requested.out))
        browser.close()


def eventful_session(path: Path) -> str:
    """Return the session with the most events: compressions, evictions, regrets, alerts."""
    store = SqliteStore(path)
    rows = store.sessions(SessionFilter(limit=500))
    store.close()
    if not rows:
        raise SystemExit(f"{path} holds no sessions; fill it with: windowpane demo")
    return max(
        rows,
        key=lambda row: (
            bool(row.compressions) + bool(row.evicted_blocks) + bool(row.regrets) + bool(row.worst_severity),
            row.turns,
        ),
    ).session_id


def compared(path: Path) -> list[str]:
    """Return the two sessions with the most removed content."""
    store = SqliteStore(path)
    rows = sorted(store.sessions(SessionFilter(limit=500)), key=lambda row: row.evicted_blocks, reverse=True)
    store.close()
    return sorted(row.session_id for row in rows[:2])


def replayed(path: Path, session: str) -> str:
    """Return the latest replay of the store, else one of *session* under three policies in a 32K window."""
    store = SqliteStore(path)
    if not (stored := store.replays(limit=1)):
        managed = combine_setups(limits=[32_768], policies=["hybrid", "lru", "fifo"])
        setups = [ReplaySetup(32_768, "compact"), *managed]
        matrix = run_matrix([StoreSource(path, session)], setups)
        made = to_stored_replay(matrix, name="three policies and compaction only", at=time.time())
        store.save_replay(made)
        stored = [made.row]
    store.close()
    return stored[0].id


def chromium() -> str:
    """Return the path of Chromium."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        raise SystemExit("no Chromium chromium; on Debian: apt-get install chromium")
    return chromium


def settled(page: Page) -> bytes:
    """Return the screenshot of a page that does not change any more: fonts and tables settle without a mark."""
    page.wait_for_function("!document.querySelector('[data-testid=stSkeleton]')", timeout=60_000)
    before, latest = b"", page.screenshot()
    while latest != before:
        page.wait_for_timeout(2_000)
        before, latest = latest, page.screenshot()
    return latest


def take(browser: Browser, url: str, shot: Shot, folder: Path) -> str:
    """Take one screenshot; returns its path and size in words."""
    context = browser.new_context(viewport={"width": 1280, "height": shot.height}, color_scheme=shot.scheme)
    page = context.new_page()
    page.goto(f"{url}/{shot.path}")
    page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]", timeout=60_000)
    tables = shot.path.startswith(("alerts", "audit", "?")) or not shot.path
    drawn = "[data-testid=stDataFrame] canvas" if tables else ".js-plotly-plot .main-svg"
    page.locator(drawn).first.wait_for(timeout=60_000)
    page.locator(".st-key-below_anchor").wait_for(state="detached", timeout=60_000)  # drawn after the chart
    if shot.scroll:
        page.evaluate(f"document.querySelector('[data-testid=stMain]').scrollTo(0, {shot.scroll})")
    path = folder / f"{shot.name}.png"
    path.write_bytes(settled(page))
    context.close()
    size = path.stat().st_size
    if size > MAXIMUM_BYTES:
        raise SystemExit(f"{path} is {size:,} bytes, more than {MAXIMUM_BYTES:,}")
    return f"{path} {size:,} bytes"


if __name__ == "__main__":
    main()
