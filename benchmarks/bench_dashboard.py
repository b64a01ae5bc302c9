"""The dashboard in a real browser on a large store, against a plain Streamlit page measured in the same run.

    python benchmarks/bench_dashboard.py [--events 1000000] [--sessions 2000] [--turns 10000] [--store FILE]

Prints: navigation to fleet and to the longest session against a page with one six-trace chart, warm
(median and 95th percentile) and cold (first page of a fresh server); moving the turn slider against an empty
fragment; audit search; and how much of it is the server's own reading and drawing. Needs a Chromium.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from statistics import median, quantiles

from playwright.sync_api import BrowserContext, Page, sync_playwright

from windowpane.events import BlocksEvicted, Event, EvictedBlock, Usage
from windowpane.settings import WindowLimits
from windowpane.store.base import EventFilter
from windowpane.store.sqlite import SqliteStore
from windowpane.tracking.tracker import SessionInfo, SessionTracker
from windowpane_dashboard.background import serving
from windowpane_dashboard.charts import session_picture
from windowpane_dashboard.filters import FleetFilters
from windowpane_dashboard.queries import fleet, fleet_frame, timeline
from windowpane_dashboard.theme import LIGHT
from windowpane_dashboard.window_queries import left_by, window_at

LONGEST = "marathon"
NAVIGATION_RATIO = 1.5
SLIDER_MILLISECONDS = 200.0
SEARCH_MILLISECONDS = 500.0
WARM_ROUNDS = 9
SLIDER_ROUNDS = 9
BATCH = 5_000
SETTLED = "[data-testid=stApp][data-test-script-state=notRunning]"
CHART = ".js-plotly-plot .main-svg"
TABLE = "[data-testid=stDataFrame] canvas"

FLOOR = """
import numpy as np
import plotly.graph_objects as go
import streamlit as st

st.set_page_config(layout="wide")
generator = np.random.default_rng(1)
figure = go.Figure()
for _ in range(6):
    figure.add_scatter(x=np.arange(2_000), y=generator.random(2_000).cumsum(), stackgroup="one")
st.plotly_chart(figure)

@st.fragment
def empty():
    turn = st.slider("Turn", 1, 10_000, 5_000)
    st.subheader(f"Turn {turn}:")

empty()
"""


def digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=16).hexdigest()


def session_events(session_id: str, turns: int, start: float) -> list[Event]:
    """An agent that reads a file every turn, with an eviction every 60 turns."""
    emitted: list[Event] = []
    info = SessionInfo(session_id, "marathon", "gpt-5", "live", f"stream-{session_id}")
    session = SessionTracker(info, emit=emitted.extend, digest=digest, limits=WindowLimits.of(128_000, "given"))
    session.start(start)
    session.add("system_prompt", "Go on.", 900, pinned=True, at=start)
    for turn in range(1, turns + 1):
        at = start + 4.0 * turn
        if turn % 60 == 0:
            drop(session, at)
        work(session, turn, at)
    session.flush()
    return emitted


def drop(session: SessionTracker, at: float) -> None:
    gone = tuple(
        EvictedBlock(block.id, block.content_type, block.tokens, "drop", "over the target", 0.2)
        for block in session.window
        if not block.pinned
    )
    removed = sum(block.tokens for block in gone)
    session.evict(BlocksEvicted("hybrid", gone, removed, removed, 12_000), (), at)


def work(session: SessionTracker, turn: int, at: float) -> None:
    session.add("tool_result", f"file_{turn}", 1_000, tool_call_id=f"call-{turn}", tool_name="read", at=at)
    used = session.measure("before", at + 1).used_tokens
    session.add("assistant_response", f"seen {turn}", 60, at=at + 2)
    session.add("tool_call", f"read {turn + 1}", 30, tool_call_id=f"call-{turn + 1}", tool_name="read", at=at + 2)
    usage = Usage(input_tokens=used // 4, output_tokens=90, cache_read_tokens=used - used // 4)
    session.end_turn(usage, cost_dollars=0.0125, latency_seconds=2.5, at=at + 3)


def fill(path: Path, *, events: int, sessions: int, turns: int) -> None:
    """The longest session, then copies of one shorter session until there are enough events."""
    store = SqliteStore(path)
    now = time.time()
    begun = time.perf_counter()
    long = session_events(LONGEST, turns, now - 4.0 * turns)
    for at in range(0, len(long), BATCH):
        store.append(long[at : at + BATCH])
    each, over = divmod(max(0, events - len(long)), sessions - 1)
    pattern = session_events("pattern", each, now - 90_000.0)[: each + 1]
    batch: list[Event] = []
    for number in range(sessions - 1):
        events_of = pattern[: each + (number < over)]
        batch += copied(events_of, f"session-{number:05}", f"agent-{number % 40}", 31.0 * (number % 2_000))
        if len(batch) >= BATCH:
            store.append(batch)
            batch = []
    store.append(batch)
    while store.index_text():
        pass
    size = store.size()
    store.close()
    print(
        f"store: {size.events:,} events of {size.sessions:,} sessions, {size.bytes / 1e6:,.0f} MB, "
        f"written in {time.perf_counter() - begun:,.0f} s"
    )


def copied(pattern: list[Event], session_id: str, agent: str, later: float) -> list[Event]:
    contexts = {}
    found = []
    for event in pattern:
        context = contexts.get(id(event.context))
        if context is None:
            context = replace(event.context, session_id=session_id, agent=agent, stream_id=f"stream-{session_id}")
            contexts[id(event.context)] = context
        found.append(event._replace(context=context, at=None if event.at is None else event.at + later))
    return found


def navigate(context: BrowserContext, address: str, drawn: str) -> float:
    """Milliseconds from the address to the drawn page, script finished."""
    page = context.new_page()
    begun = time.perf_counter()
    page.goto(address)
    page.locator(drawn).first.wait_for(timeout=120_000)
    page.wait_for_selector(SETTLED, timeout=120_000)
    spent = 1_000 * (time.perf_counter() - begun)
    page.close()
    return spent


def slide(page: Page, turn: int) -> float:
    """Milliseconds from a key on the slider to the new turn's heading."""
    page.get_by_role("slider").first.focus()
    times = []
    for step in range(1, SLIDER_ROUNDS + 1):
        begun = time.perf_counter()
        page.keyboard.press("ArrowRight")
        page.get_by_role("heading", name=f"Turn {turn + step}:").wait_for(timeout=60_000)
        page.wait_for_selector(SETTLED, timeout=60_000)
        times.append(1_000 * (time.perf_counter() - begun))
    return median(times)


def search(page: Page) -> float:
    """Milliseconds from the Enter key to the rows that match."""
    times = []
    field = page.get_by_role("textbox", name="Search")
    for word in ("evicted", "hybrid", "target", "tool_result", "marathon"):
        field.fill(word)
        begun = time.perf_counter()
        field.press("Enter")
        page.wait_for_function(f"new URLSearchParams(location.search).get('text') === '{word}'", timeout=60_000)
        page.wait_for_selector(SETTLED, timeout=60_000)
        times.append(1_000 * (time.perf_counter() - begun))
    return median(times)


def timed(act: Callable[[], object]) -> float:
    times = []
    for _ in range(3):
        begun = time.perf_counter()
        act()
        times.append(1_000 * (time.perf_counter() - begun))
    return median(times)


def server_side(path: Path, turns: int) -> dict[str, float]:
    """Milliseconds that reading and drawing take in the server, without a browser, nothing cached."""
    store = SqliteStore(path)
    now = time.time()

    def draw() -> None:
        drawn = timeline(store, LONGEST)
        session_picture(
            drawn.turns, drawn.spans, drawn.marks, LIGHT, selected=None, regrets=drawn.regrets
        ).to_json()

    def at_turn() -> None:
        window_at(store, LONGEST, turns // 2)
        left_by(store, LONGEST, turns // 2)
        store.events(EventFilter(session_id=LONGEST, turn_from=turns // 2, turn_to=turns // 2))

    spent = {
        "fleet: list, alerts, frame": timed(lambda: fleet_frame(fleet(store, FleetFilters()), now)),
        "session: timeline read": timed(lambda: timeline(store, LONGEST)),
        "session: timeline read and picture": timed(draw),
        "turn: window, departures, events": timed(at_turn),
        "audit: search and count": timed(
            lambda: (
                store.events(EventFilter(text="evicted", limit=101)),
                store.count_events(EventFilter(text="evicted")),
            )
        ),
    }
    store.close()
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--sessions", type=int, default=2_000)
    parser.add_argument("--turns", type=int, default=10_000)
    parser.add_argument("--store", type=Path, help="keep the store here, and use it where it exists")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = asked.store or Path(folder) / "windowpane.db"
        if not path.exists():
            fill(path, events=asked.events, sessions=asked.sessions, turns=asked.turns)
        floor = Path(folder) / "floor.py"
        floor.write_text(FLOOR, encoding="utf-8")
        for name, spent in server_side(path, asked.turns).items():
            print(f"server  {name}: {spent:,.0f} ms")
        in_browser(path, floor, asked.turns)


def in_browser(path: Path, floor: Path, turns: int) -> None:
    app = Path(sys.modules["windowpane_dashboard"].__file__ or "").with_name("app.py")
    middle = turns // 2
    pages = {"fleet": ("", TABLE), "session": (f"session?session={LONGEST}&turn={middle}", CHART)}
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        cold_floor = []
        for _ in range(3):
            with serving(path, app=floor) as url:
                context = browser.new_context(viewport={"width": 1280, "height": 800})
                cold_floor.append(navigate(context, url, CHART))
                context.close()
        with (
            serving(path, app=floor) as floor_url,
            serving(path, app=app) as url,
        ):
            context = browser.new_context(viewport={"width": 1280, "height": 800})
            navigate(context, floor_url, CHART)
            for place, drawn in pages.values():
                navigate(context, f"{url}/{place}", drawn)
            times: dict[str, list[float]] = {"floor": [], **{name: [] for name in pages}}
            for _ in range(WARM_ROUNDS):  # in turns, so that a busy moment of the machine meets all of them
                times["floor"].append(navigate(context, floor_url, CHART))
                for name, (place, drawn) in pages.items():
                    times[name].append(navigate(context, f"{url}/{place}", drawn))
            base = median(times["floor"])
            print(f"floor   warm {base:,.0f} ms, cold {median(cold_floor):,.0f} ms")
            for name in pages:
                high = quantiles(times[name], n=20)[-1]
                verdict(
                    f"{name} warm",
                    median(times[name]) / base,
                    NAVIGATION_RATIO,
                    f"{median(times[name]):,.0f} ms, 95% {high:,.0f} ms",
                )
            interactions(context, floor_url, url, middle)
            context.close()
        for name, (place, drawn) in pages.items():
            cold = []
            for _ in range(3):
                with serving(path, app=app) as url:
                    context = browser.new_context(viewport={"width": 1280, "height": 800})
                    cold.append(navigate(context, f"{url}/{place}", drawn))
                    context.close()
            verdict(
                f"{name} cold", median(cold) / median(cold_floor), NAVIGATION_RATIO, f"{median(cold):,.0f} ms"
            )
        browser.close()


def interactions(context: BrowserContext, floor_url: str, url: str, middle: int) -> None:
    page = context.new_page()
    page.goto(floor_url)
    page.wait_for_selector(SETTLED, timeout=60_000)
    empty = slide(page, 5_000)
    page.goto(f"{url}/session?session={LONGEST}&turn={middle}")
    page.get_by_role("heading", name=f"Turn {middle}:").wait_for(timeout=60_000)
    page.wait_for_selector(SETTLED, timeout=60_000)
    moved = slide(page, middle)
    above(f"turn slider above an empty fragment ({empty:,.0f} ms)", moved - empty, SLIDER_MILLISECONDS)
    page.goto(f"{url}/audit")
    page.wait_for_selector(SETTLED, timeout=60_000)
    page.locator(TABLE).first.wait_for(timeout=60_000)
    above("audit search", search(page), SEARCH_MILLISECONDS)
    page.close()


def verdict(name: str, ratio: float, limit: float, detail: str) -> None:
    print(
        f"{'ok  ' if ratio <= limit else 'OVER'}    {name}: {ratio:.2f} times the floor, limit {limit} ({detail})"
    )


def above(name: str, spent: float, limit: float) -> None:
    print(f"{'ok  ' if spent <= limit else 'OVER'}    {name}: {spent:,.0f} ms, limit {limit:,.0f} ms")


def chromium() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        raise SystemExit("no Chromium found; on Debian: apt-get install chromium")
    return found


if __name__ == "__main__":
    main()
