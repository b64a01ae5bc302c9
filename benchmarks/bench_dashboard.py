"""The dashboard in a real browser on a large store, against a plain Streamlit page measured in the same run.

    python benchmarks/bench_dashboard.py [--events 1000000] [--sessions 2000] [--turns 10000] [--store FILE]
        [--rounds 11]

Prints: navigation to each page and view against a page with one six-trace chart, warm (median and 95th
percentile) and cold (first page of a fresh server in a fresh browser profile); moving the turn slider against
an empty fragment; opening a block; both searches; how much of it is the server's own reading and drawing; and
the same reads on a tenth of the store. A page counts as navigated to at the first moment at which its chart or
table is drawn and its script has ended, measured for both sides in the page itself, frame by frame. The time
until the tables below the charts are drawn is printed beside it. Pages take turns, so that a busy moment of the
machine affects all. Needs a Chromium.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

from dashboard_store import LONGEST, PARENT, complete, fill
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from windowpane.core.times import live_since, midnight
from windowpane.store.embedded import SqliteStore
from windowpane.store.filters import EventFilter
from windowpane.store.search.content import ContentFilter
from windowpane_dashboard.charts.window_chart import window_chart
from windowpane_dashboard.queries.filters import FleetFilters
from windowpane_dashboard.queries.fleet import fleet_frame, read_fleet
from windowpane_dashboard.queries.timeline import read_timeline
from windowpane_dashboard.queries.window import removed_blocks, window_frame
from windowpane_dashboard.server.background import serving
from windowpane_dashboard.server.launch import APP, warm_up
from windowpane_dashboard.style.theme import LIGHT

NAVIGATION_RATIO = 1.5
GROWTH_RATIO = 1.5
SLIDER_MILLISECONDS = 200.0
SEARCH_MILLISECONDS = 500.0
BLOCK_MILLISECONDS = 300.0
WARM_ROUNDS = 11
COLD_ROUNDS = 5
SLIDER_ROUNDS = 11
SERVER_ROUNDS = 5
FLEET_ROWS = 500
PATIENCE = 120_000
SETTLED = "[data-testid=stApp][data-test-script-state=notRunning]"
CHART = ".js-plotly-plot .main-svg"
TABLE = "[data-testid=stDataFrame] canvas"

PANEL = "document.querySelector('.st-key-block_panel')?.textContent"

MOMENT = """([shown, settled]) => {
  const element = document.querySelector(shown);
  const drawn = element && element.getBoundingClientRect().width > 0;
  return drawn && document.querySelector(settled) && performance.now();
}"""
"""Milliseconds from the address on to the first frame in which both are so."""

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


class Target(NamedTuple):
    """A page to navigate to."""

    app: Path
    path: str
    drawn: str
    """Selector of the part that is painted when the page is usable."""
    later: str
    """Selector of the last part that is drawn without scrolling."""


class Spent(NamedTuple):
    """Milliseconds from the address on."""

    drawn: float
    whole: float


def navigate(context: BrowserContext, url: str, target: Target) -> Spent:
    """Go there and wait until the page is drawn and its script has ended, then for the rest of it."""
    page = context.new_page()
    page.goto(f"{url}/{target.path}", wait_until="commit")
    drawn, whole = (
        float(page.wait_for_function(MOMENT, arg=[selector, SETTLED], timeout=PATIENCE).json_value())
        for selector in (target.drawn, target.later)
    )
    page.close()
    return Spent(drawn, whole)


def profile(browser: Browser) -> BrowserContext:
    return browser.new_context(viewport={"width": 1280, "height": 800})


def warm(
    browser: Browser, targets: dict[str, Target], urls: dict[Path, str], *, rounds: int
) -> dict[str, list[Spent]]:
    context = profile(browser)
    times: dict[str, list[Spent]] = {name: [] for name in targets}
    for target in targets.values():
        navigate(context, urls[target.app], target)
    for _ in range(rounds):
        for name, target in targets.items():
            times[name].append(navigate(context, urls[target.app], target))
    context.close()
    return times


def cold(
    browser: Browser, targets: dict[str, Target], store: Path, *, rounds: int
) -> tuple[dict[str, list[Spent]], dict[str, list[float]]]:
    """Milliseconds of the first page of a fresh server, and those its start took before."""
    times: dict[str, list[Spent]] = {name: [] for name in targets}
    starts: dict[str, list[float]] = {name: [] for name in targets}
    for _ in range(rounds):
        for name, target in targets.items():
            started = time.perf_counter()
            with serving(store, app=target.app) as url:
                starts[name].append(1_000 * (time.perf_counter() - started))
                context = profile(browser)
                times[name].append(navigate(context, url, target))
                context.close()
    return times, starts


def opened(context: BrowserContext, address: str, turn: int) -> Page:
    page = context.new_page()
    page.goto(address)
    page.get_by_role("heading", name=f"Turn {turn}:").wait_for(timeout=PATIENCE)
    page.wait_for_selector(SETTLED, timeout=PATIENCE)
    return page


def step(page: Page, turn: int) -> float:
    """Milliseconds from a key on the slider to the new turn's heading, script finished."""
    page.bring_to_front()
    page.get_by_role("slider").first.focus()
    started = time.perf_counter()
    page.keyboard.press("ArrowRight")
    page.get_by_role("heading", name=f"Turn {turn}:").wait_for(timeout=PATIENCE)
    page.wait_for_selector(SETTLED, timeout=PATIENCE)
    return 1_000 * (time.perf_counter() - started)


def slide(context: BrowserContext, floor_url: str, url: str, middle: int) -> None:
    empty = opened(context, floor_url, 5_000)
    ours = opened(context, f"{url}/session?session={LONGEST}&turn={middle}", middle)
    charts = [id_of(ours)]
    base, moved = [], []
    for number in range(1, SLIDER_ROUNDS + 2):
        base.append(step(empty, 5_000 + number))
        moved.append(step(ours, middle + number))
        charts.append(id_of(ours))
    floor, spent = median(base[1:]), median(moved[1:])  # the first step of each loads what later ones have
    above(f"turn slider above an empty fragment ({floor:,.0f} ms)", spent - floor, SLIDER_MILLISECONDS)
    print(f"        the chart was drawn {len(set(charts))} time over {SLIDER_ROUNDS + 1} steps")
    empty.close()
    ours.close()


def id_of(page: Page) -> str:
    """Return the mark of the chart's element: set at first sight, lost when it is drawn again."""
    mark = "plot => plot.dataset.seen ||= String(Math.random())"
    return str(page.locator(".st-key-window_chart .main-svg").first.evaluate(mark))


def search(context: BrowserContext, url: str) -> None:
    """Milliseconds from the Enter key to the rows that match."""
    page = context.new_page()
    page.goto(f"{url}/audit")
    page.locator(TABLE).first.wait_for(timeout=PATIENCE)
    page.wait_for_selector(SETTLED, timeout=PATIENCE)
    times = []
    field = page.get_by_role("combobox", name="Search or filter")
    for word in ("evicted", "hybrid", "target", "tool_result", "marathon", "drop", "read", "final", "policy"):
        field.fill(f"{word} ")  # with a space no option has it, so that it is text
        started = time.perf_counter()
        field.press("Enter")
        page.wait_for_function(f"new URLSearchParams(location.search).get('text') === '{word}'", timeout=PATIENCE)
        page.wait_for_selector(SETTLED, timeout=PATIENCE)
        times.append(1_000 * (time.perf_counter() - started))
    above(
        f"audit search (slowest of {len(times)} words {max(times):,.0f} ms)", median(times), SEARCH_MILLISECONDS
    )
    page.close()


def find_text(context: BrowserContext, url: str) -> None:
    """Milliseconds from the Enter key to the texts that match, on the search page."""
    page = context.new_page()
    page.goto(f"{url}/search")
    field = page.get_by_role("textbox", name="Search captured content")
    field.wait_for(timeout=PATIENCE)
    page.wait_for_selector(SETTLED, timeout=PATIENCE)
    times = []
    for word in (
        "ledger_77",
        "edger_7",
        "vector_9 = ",
        "file_4321",
        "session-00017 file",
        "seen 9",
        "rout",
        "none_0",
    ):
        field.fill(word)
        started = time.perf_counter()
        field.press("Enter")
        page.wait_for_function(
            "word => new URLSearchParams(location.search).get('text') === word.trim()", arg=word, timeout=PATIENCE
        )
        page.wait_for_selector(SETTLED, timeout=PATIENCE)
        times.append(1_000 * (time.perf_counter() - started))
    slowest = f"slowest of {len(times)} queries {max(times):,.0f} ms"
    above(f"search in captured texts ({slowest})", median(times), SEARCH_MILLISECONDS)
    page.close()


def open_blocks(context: BrowserContext, url: str, middle: int) -> None:
    """Milliseconds from the click on a block of the strip to its text and life beside the page."""
    page = opened(context, f"{url}/session?session={LONGEST}&turn={middle}", middle)
    times = []
    for number in range(SLIDER_ROUNDS + 1):
        page.wait_for_selector(SETTLED, timeout=PATIENCE)
        block = page.locator(".strip .blocks i:not(.limit)").nth(1 + 3 * number)  # a tool result
        block.evaluate("block => block.scrollIntoView({block: 'center'})")  # not below the navigation
        started = time.perf_counter()
        block.click(force=True)
        page.wait_for_function(f"window.lastBlock !== ({PANEL})", timeout=PATIENCE)
        page.wait_for_selector(SETTLED, timeout=PATIENCE)
        times.append(1_000 * (time.perf_counter() - started))
        page.evaluate(f"window.lastBlock = {PANEL}")
    above(f"opening a block (slowest {max(times[1:]):,.0f} ms)", median(times[1:]), BLOCK_MILLISECONDS)
    page.close()


def server_side(path: Path, turns: int) -> dict[str, Callable[[], object]]:
    """Return the reads and drawings of the server for each page, nothing cached."""
    store = SqliteStore(path)
    now, middle = time.time(), turns // 2
    since = live_since(now)
    fleet = FleetFilters().to_store(limit=FLEET_ROWS, since=since)

    def draw() -> None:
        drawn = read_timeline(store, LONGEST)
        window_chart(drawn.turns, drawn.spans, drawn.marks, LIGHT, regrets=drawn.regrets).to_json()

    def at_turn() -> None:
        window_frame(store.blocks_at(LONGEST, middle))
        removed_blocks(store, LONGEST, middle)
        store.events(EventFilter(session_id=LONGEST, turn_from=middle, turn_to=middle))

    block = store.blocks_at(LONGEST, middle)[-2]

    def read_block() -> None:
        life = store.block_life(LONGEST, block.block_id)
        assert life is not None
        store.content(life.block.digest)

    def page(**filters: str) -> None:
        store.events(EventFilter(**filters, limit=101))
        store.count_events(EventFilter(**filters))

    return {
        "fleet: list, alerts, frame": lambda: fleet_frame(
            read_fleet(store, fleet, since, midnight=midnight(now)), now
        ),
        "session: timeline read": lambda: read_timeline(store, LONGEST),
        "session: timeline read and chart": draw,
        "turn: window, removed blocks, events": at_turn,
        "block: text and life": read_block,
        "search: a word": lambda: store.find_content(ContentFilter("ledger_77")),
        "search: a part of words": lambda: store.find_content(ContentFilter("edger_7 ector_9")),
        "search: two letters": lambda: store.find_content(ContentFilter("zq")),
        "search: in a session": lambda: store.find_content(ContentFilter("ledger_77", LONGEST)),
        "audit: a page of all events": lambda: store.events(EventFilter(limit=101, newest_first=True)),
        "audit: a page of a search": lambda: page(text="evicted"),
        "audit: a page of a search for a common word": lambda: page(text="tool_result"),
        "audit: a page of a search in a session": lambda: page(text="tool_result", session_id=LONGEST),
    }


def server_report(large: Path, small: Path, turns: int) -> None:
    """Each read on the whole store and on the small one, in turns, in a process made ready like the dashboard's.

    Without that the garbage collector looks through the libraries' objects (50 ms) in every second read or so,
    and since both stores are read in turns, always in that of the same store.
    """
    warm_up()
    reads = server_side(large, turns)
    others = server_side(small, turns)
    for name, read in reads.items():
        spent, other = [], []
        for _ in range(SERVER_ROUNDS):
            spent.append(timed(read))
            other.append(timed(others[name]))
        ratio = median(spent) / median(other)
        searches = "search" in name  # counts all that it finds, which is more in a larger store
        kept = median(spent) <= SEARCH_MILLISECONDS if searches else ratio <= GROWTH_RATIO
        print(
            f"{'ok  ' if kept else 'OVER'}    server  {name}: {median(spent):,.1f} ms, {ratio:.2f} times that of "
            f"the small store, limit {f'{SEARCH_MILLISECONDS:.0f} ms' if searches else GROWTH_RATIO}"
        )


def timed(act: Callable[[], object]) -> float:
    started = time.perf_counter()
    act()
    return 1_000 * (time.perf_counter() - started)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--sessions", type=int, default=2_000)
    parser.add_argument("--turns", type=int, default=10_000)
    parser.add_argument(
        "--rounds", type=int, default=WARM_ROUNDS, help="of each page, at most; 2 for a quick look"
    )
    parser.add_argument("--store", type=Path, help="keep the store here, and use it where it exists")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = arguments.store or Path(folder) / "windowpane.db"
        if not path.exists():
            fill(path, events=arguments.events, sessions=arguments.sessions, turns=arguments.turns)
        complete(path)
        small = Path(folder) / "small.db"
        fill(small, events=arguments.events // 10, sessions=arguments.sessions, turns=arguments.turns)
        server_report(path, small, arguments.turns)
        floor = Path(folder) / "floor.py"
        floor.write_text(FLOOR, encoding="utf-8")
        in_browser(path, floor, arguments.turns // 2, rounds=arguments.rounds)


def in_browser(path: Path, floor: Path, middle: int, *, rounds: int) -> None:
    targets = {
        "floor": Target(floor, "", CHART, CHART),
        "fleet": Target(APP, "", TABLE, TABLE),
        "session": Target(APP, f"session?session={LONGEST}&turn={middle}", CHART, TABLE),
        "team": Target(APP, f"session?session={PARENT}&tab=team", TABLE, TABLE),
        "alerts": Target(APP, "alerts", TABLE, TABLE),
        "compare": Target(
            APP, f"compare?one={LONGEST}&other={PARENT}", ".st-key-compare_chart_B .main-svg", TABLE
        ),
        "trends": Target(APP, "trends", ".st-key-trend_cost .main-svg", TABLE),
        "search": Target(APP, "search?text=ledger_77", ".st-key-hits a", ".st-key-hits a"),
        "audit": Target(APP, "audit", TABLE, TABLE),
    }
    with sync_playwright() as driver, ExitStack() as servers:
        browser = driver.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        urls = {app: servers.enter_context(serving(path, app=app)) for app in (floor, APP)}
        report("warm", warm(browser, targets, urls, rounds=min(rounds, WARM_ROUNDS)))
        context = profile(browser)
        slide(context, urls[floor], urls[APP], middle)
        search(context, urls[APP])
        find_text(context, urls[APP])
        open_blocks(context, urls[APP], middle)
        context.close()
        servers.close()
        times, starts = cold(browser, targets, path, rounds=min(rounds, COLD_ROUNDS))
        report("cold", times)
        started = {name: median(each) for name, each in starts.items()}
        print(
            f"        starting the server before: floor {started['floor']:,.0f} ms, "
            f"ours {started['session']:,.0f} ms"
        )
        browser.close()


def report(how: str, times: dict[str, list[Spent]]) -> None:
    base = median(spent.drawn for spent in times["floor"])
    print(f"floor   {how} {base:,.0f} ms (medians of {len(times['floor'])})")
    for name in list(times)[1:]:  # the first is the floor
        drawn = [spent.drawn for spent in times[name]]
        high = f", 95% {quantiles(drawn, n=20)[-1]:,.0f} ms" if how == "warm" else ""
        verdict(f"{name} {how}", median(drawn) / base, NAVIGATION_RATIO, f"{median(drawn):,.0f} ms{high}")
    for name in ("session", "compare", "trends"):
        whole = median(spent.whole for spent in times[name])
        print(f"        {name} {how}, with the tables below the fold: {whole / base:.2f} times, {whole:,.0f} ms")


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
