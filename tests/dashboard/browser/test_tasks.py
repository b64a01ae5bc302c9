"""The tasks of a user: each takes at most five actions, on real recordings."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote

import pytest
from tests.dashboard.browser.recordings import moved_to, write_with_subagents
from tests.dashboard.views.test_costs_by_name import fill as fill_with_a_server

from windowpane.alerts.delivery.message import AlertMessage, message_of
from windowpane.config.loading import load_config
from windowpane.core.events import AlertFired, Event
from windowpane.outputs.http.local_dashboard import local_dashboard
from windowpane.sources.imports.importer import import_paths
from windowpane.sources.imports.pipeline import playback_settings
from windowpane.sources.imports.watch import Watcher
from windowpane.sources.transcripts.discovery import all_readers
from windowpane.store.embedded import SqliteStore

pytest.importorskip("playwright.sync_api")
from playwright.sync_api import expect  # only where the browser is installed

pytestmark = pytest.mark.browser

MOST_ACTIONS = 5
SMALL, LARGE = "pi-managed-8k", "pi-managed-32k"
FLEET, FIRINGS = "Sessions, live ones first, then by pressure", "Alerts, the latest first"
REMOVED = "Content removed from the window, latest first"
COMPACTED = "839b35f7-4dbd-4d93-9772-3c272cc87caa"
LONGEST = "d703a1a9-1b7b-4fb1-b512-c9738b1fe617"
PARENT = "07d86da7-2e39-4276-a0d5-7b46a85b8750"
RED, ROWS_UNTIL_RED = "15735695-7dd4-4367-9b11-3a8b95dfbbac", 262
ROW_PIXELS, FIRST_ROW_PIXELS = 33, 52


@dataclass
class Person:
    """A user of the page, whose actions are counted."""

    site: Any
    actions: list[str] = field(default_factory=list)

    @property
    def page(self) -> Any:
        return self.site.page

    def _acts(self, what: str) -> None:
        self.actions.append(what)
        assert len(self.actions) <= MOST_ACTIONS, self.actions

    def opens(self, path: str = "", **query: str) -> None:
        self._acts(f"open {path}")
        self.site.open(path, **query)

    def clicks(self, index: Any, **options: Any) -> None:
        self._acts(f"click {index}")
        index.click(**options)

    def types(self, index: Any, text: str) -> None:
        """Type into a field and press Enter."""
        self._acts(f"type {text}")
        index.evaluate("field => field.scrollIntoView({ block: 'center' })")
        index.fill(text)
        index.press("Enter")

    def presses(self, key: str) -> None:
        self._acts(f"press {key}")
        self.page.keyboard.press(key)

    def picks(self, label: str, text: str) -> None:
        """Choose from a list by typing the start of an option."""
        self.types(self.page.get_by_role("combobox", name=label), text)

    def adds(self, label: str, text: str) -> None:
        """Choose one more from a list of several, and leave the list."""
        self.picks(label, text)
        self.page.keyboard.press("Escape")

    def reads(self, text: str) -> None:
        """See a text on the page."""
        self.page.get_by_text(text).first.wait_for()

    def table(self, name: str) -> Any:
        """The table with this text alternative."""
        return self.page.locator(
            "[data-testid=stDataFrame]", has=self.page.locator(f"button[aria-label$=': {name}']")
        ).first

    def cells(self, name: str) -> list[str]:
        """The cells of a table, as a screen reader finds them."""
        return [cell for row in self.rows(name) for cell in row]

    def rows(self, name: str) -> list[list[str]]:
        """The rows of a table that are visible, as a screen reader finds them."""
        self.site.settle()
        table = self.table(name)
        table.locator("canvas table td").first.wait_for(state="attached")
        result = table.evaluate(
            "grid => [...grid.querySelectorAll('canvas table tr')]"
            ".map(row => [...row.querySelectorAll('td')].map(cell => cell.textContent))"
        )
        return [row for row in result if row]

    def column(self, name: str, header: str) -> list[str]:
        """The visible cells of a column."""
        rows = self.rows(name)  # waits for the table
        headers = self.table(name).locator("canvas table th").all_text_contents()
        return [row[headers.index(header)] for row in rows]

    def opens_row(self, name: str, holds: Callable[[list[str]], bool]) -> list[str]:
        """Select the first row for which *holds* is true; returns its cells."""
        self.site.waits(lambda: any(map(holds, self.rows(name))), f"a row of that kind in {name}")
        rows = self.rows(name)
        index = next(at for at, row in enumerate(rows) if holds(row))
        scroller = self.table(name).locator(".dvn-scroller").first
        self.clicks(scroller, position={"x": 17, "y": FIRST_ROW_PIXELS + ROW_PIXELS * index})
        return rows[index]

    def sorts(self, name: str, *, at: int) -> None:
        """Sort a table by a column, the lowest first; its header is *at* this many pixels."""
        before = self.rows(name)
        self.clicks(self.table(name).locator(".dvn-scroller").first, position={"x": at, "y": 16})
        self.site.waits(lambda: self.rows(name) != before, f"another order of {name}")

    def opens_session(self, session_id: str) -> None:
        """Open the session from the fleet page."""
        self.opens()
        self.opens_row(FLEET, lambda row: any(cell.startswith(f"session?session={session_id}#") for cell in row))
        self.page.wait_for_url(f"**/session?session={session_id}")
        self.site.settle()

    def opens_tab(self, name: str, section: str | None = None) -> None:
        """Open a tab of the session page unless it is open, and a section of it."""
        tab = self.page.get_by_role("tab", name=name, exact=True)
        tab.wait_for()
        if tab.get_attribute("aria-selected") != "true":
            self.clicks(tab)
            self.site.settle()
        if section is not None:
            self.clicks(self.page.get_by_role("radio", name=section, exact=True))
            self.site.settle()

    def selects_turn(self, turn: int) -> None:
        """Type the turn."""
        self.types(self.page.get_by_role("spinbutton", name="Go to turn"), str(turn))
        self.page.get_by_role("heading", name=f"Turn {turn}:").wait_for()
        self.site.settle()


@pytest.fixture
def person(site: Callable[..., Any], demo_store: Path) -> Person:
    """Before the demo's store: recordings, and one of them managed again in small windows."""
    return Person(site(demo_store))


@pytest.fixture
def reader(site: Callable[..., Any], recorded: Path) -> Person:
    """Before a store of imported recordings."""
    return Person(site(recorded))


@pytest.fixture
def maker(site: Callable[..., Any], seen_store: Path) -> Person:
    """Before a small store in which a file is read, evicted and read again."""
    return Person(site(seen_store))


def test_find_what_overflowed_among_the_alerts(person: Person) -> None:
    person.opens("alerts")
    person.picks("Search or filter", "alert: Window overflowed")
    person.page.wait_for_url("**alert=overflow*")
    person.site.settle()
    person.reads("critical: Window overflowed")
    person.site.waits(
        lambda: all("session=pi-managed" in cell for cell in person.cells(FIRINGS) if "session=" in cell),
        "only sessions that overflowed are listed",
    )

    person.clicks(person.page.get_by_role("link", name="Turn "))

    person.reads("Overflow at turn")
    person.site.assert_at("**session=pi-managed*")


@pytest.mark.parametrize(
    ("who", "session"), [pytest.param("reader", COMPACTED, marks=pytest.mark.matrix), ("person", SMALL)]
)
def test_find_what_was_removed_at_turn_40(request: pytest.FixtureRequest, who: str, session: str) -> None:
    person: Person = request.getfixturevalue(who)
    person.opens_session(session)
    person.selects_turn(40)
    person.site.waits(
        lambda: all(int(turn) <= 40 for turn in person.column(REMOVED, "removed")),
        "all of them are earlier",
    )

    turns = list(map(int, person.column(REMOVED, "removed")))
    assert turns == sorted(turns, reverse=True)
    assert max(turns) <= 40
    assert "replaced by" in person.page.locator("[data-testid=stMain]").text_content()


def test_what_a_compaction_lost(maker: Person) -> None:
    maker.opens_session("refactor-api")
    maker.opens_tab("Losses")
    facts = "Facts of this compaction"
    maker.clicks(maker.page.get_by_text("Show all 12 facts"))
    maker.site.waits(lambda: maker.rows(facts)[0][0] == "contradicted", "the worst fact is the first")

    fates = ["contradicted", *["lost"] * 3, *["recoverable"] * 2, *["kept"] * 6]
    assert [row[0] for row in maker.rows(facts)] == fates


def test_the_eviction_that_made_the_agent_read_a_file_twice(maker: Person) -> None:
    maker.opens_session("refactor-api")
    maker.clicks(maker.page.locator(".st-key-headline").get_by_role("link", name="needed again"))
    maker.site.settle()

    row = maker.opens_row(
        "Removed content that was needed again, the largest first",
        lambda row: row[0].startswith("read") and "never referenced" in "".join(row),
    )

    removed, again = row[3:5]
    assert int(removed) < int(again)
    maker.page.get_by_role("heading", name=f"Turn {removed}:").wait_for()
    maker.page.wait_for_url(f"**turn={removed}**")


@pytest.mark.matrix
def test_export_the_audit_log_of_one_session(reader: Person, tmp_path: Path) -> None:
    reader.opens()
    reader.clicks(reader.page.get_by_role("link", name="Audit"))
    reader.page.wait_for_url("**/audit")
    reader.site.settle()
    reader.picks("Search or filter", LONGEST)
    reader.page.wait_for_url(f"**session={LONGEST}*")
    reader.site.settle()
    with reader.page.expect_download(timeout=60_000) as download:
        reader.clicks(reader.page.get_by_role("link", name="JSON Lines"))
    path = tmp_path / "events.jsonl"
    download.value.save_as(path)

    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

    assert len(lines) > 1_000
    assert {line["event"]["session_id"] for line in lines} == {LONGEST}
    assert len({line["seq"] for line in lines}) == len(lines)


@pytest.mark.matrix
def test_decide_between_two_policies(person: Person, tmp_path: Path) -> None:
    """Four actions: the page, a session, simulate, save the configuration of the policy that comes out best."""
    person.opens("replay")
    person.adds("Recorded sessions", LONGEST)
    person.clicks(person.page.get_by_role("button", name="Simulate"))

    person.reads("comes out best")
    person.site.settle()
    with person.page.expect_download(timeout=60_000) as download:
        person.clicks(person.page.get_by_role("button", name="Configuration"))
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)

    setups = [row[0] for row in person.rows("Values of each setup over all its sessions")]
    assert [setup.split(",")[0] for setup in setups] == ["compaction only", "least useful first"]
    assert load_config(path).eviction.policy == "hybrid"
    assert path.name == "windowpane.yml"
    assert len(person.actions) == 4


@pytest.fixture
def searcher(site: Callable[..., Any], captured: Path) -> Person:
    """Before a store with a recorded session and its texts."""
    return Person(site(captured))


def test_find_a_word_and_the_life_of_its_block(searcher: Person) -> None:
    searcher.opens("search")
    searcher.types(searcher.page.get_by_role("textbox", name="Search captured content"), "GeminiBeforeToo")
    hit = searcher.page.locator(".st-key-hits a", has_text="tool result").first
    expect(hit.locator("strong", has_text="GeminiBeforeToo")).to_be_visible()
    hit.focus()
    searcher.presses("Enter")
    searcher.page.wait_for_url("**/session?**block=*")
    searcher.reads("Its life in this session")
    searcher.site.assert_shows("Added as tool result")
    expect(searcher.page.locator(".st-key-block_panel code").first).to_contain_text("GeminiBeforeToo")
    assert len(searcher.actions) <= 4


def test_when_a_text_was_lost_and_what_replaced_it(searcher: Person) -> None:
    searcher.opens("search", text="handleGeminiBeforeTool")
    searcher.clicks(searcher.page.locator(".st-key-hits a", has_text="turn 18 ").first)
    searcher.site.assert_shows(re.compile("Compacted with 1[0-9]+ other items"))
    searcher.site.assert_shows(re.compile("Replaced by a summary of 3,[0-9]+ tokens"))
    replaced = searcher.page.locator(".st-key-block_panel [data-testid=stPageLink] a", has_text="Turn 31")
    searcher.clicks(replaced.last)

    searcher.page.get_by_role("heading", name="Turn 31:").wait_for()
    searcher.site.settle()
    searcher.site.assert_shows("Summary, ")
    searcher.site.assert_shows("This session is being continued from a previous conversation")
    assert len(searcher.actions) <= 4


def test_read_a_block_of_the_strip(searcher: Person) -> None:
    searcher.opens("session", session=COMPACTED, turn="30")
    strip = searcher.page.locator(".strip .blocks")
    box = strip.bounding_box()
    assert box is not None
    last = strip.locator("i:not(.limit)").last
    searcher.clicks(last, force=True)

    searcher.page.wait_for_url("**block=*")
    searcher.reads("Its life in this session")
    searcher.clicks(searcher.page.get_by_role("button", name="Close"))
    expect(searcher.page.locator(".st-key-block_panel")).to_have_count(0)


def test_note_what_was_seen(searcher: Person, captured: Path) -> None:
    searcher.opens("session", session=COMPACTED, turn="12", tab="notes")
    field = searcher.page.get_by_role("textbox", name="Note on turn 12")
    searcher.clicks(field)
    field.fill("the plan changed here")
    searcher.clicks(searcher.page.get_by_role("button", name="Add note"))

    expect(searcher.page.locator("[data-testid=stText]", has_text="the plan changed here")).to_be_visible()
    expect(searcher.page.locator(".st-key-window_chart .ytick, .st-key-window_chart .y2tick")).to_contain_text(
        ["note"]
    )
    store = SqliteStore(captured)
    assert store.verify().intact
    store.close()


@dataclass(frozen=True)
class Trouble:
    """A store with a session in trouble now, which was watched while it grew."""

    store: Path
    message: Callable[[str | None], AlertMessage]
    """The alert about the red window, as it is sent by a machine with this dashboard."""


class Inbox:
    """Replaces the notifier: keeps the alerts that would be delivered."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def write(self, batch: list[Event]) -> None:
        self.events += batch


@pytest.fixture(scope="module")
def troubled(sessions_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Trouble:
    """Recordings: one in red, watched as if it continued now; one with a sub-agent; one compacted."""
    corpus = sessions_dir.parent / "corpus" / "claude_code"
    if not corpus.is_dir():
        pytest.skip("WINDOWPANE_SESSIONS_DIR has no corpus beside it: no long recorded session to watch")
    folder = tmp_path_factory.mktemp("troubled")
    store = SqliteStore(folder / "windowpane.db")
    playback = playback_settings(store.digester())
    finished, live = folder / "finished", folder / "live"
    finished.mkdir()
    live.mkdir()
    write_with_subagents(corpus / f"{PARENT}.jsonl", finished)
    compacted = sorted((sessions_dir / "claude_code").glob("compact_small_a6*"))
    import_paths([finished, *compacted], store, playback=playback, readers=all_readers())

    inbox = Inbox()
    watcher = Watcher(
        [live],
        store,
        playback=playback_settings(store.digester(), limit_tokens=200_000),  # without it the size is assumed
        since_seconds=3_600,
    )
    watcher.notifier = inbox  # type: ignore[assignment]
    recorded = (corpus / f"{RED}.jsonl").read_text(encoding="utf-8").splitlines()
    rows = moved_to(recorded[:ROWS_UNTIL_RED], time.time())
    with (live / f"{RED}.jsonl").open("a", encoding="utf-8") as transcript:
        for part in (rows[:200], rows[200:]):
            transcript.write("".join(f"{row}\n" for row in part))
            transcript.flush()
            watcher.poll()
    store.close()
    fired = [event for event in inbox.events if isinstance(event.data, AlertFired)]
    red = next(event for event in fired if event.data.alert == "utilization")

    def message(dashboard: str | None) -> AlertMessage:
        made = message_of(red, public_url=dashboard)
        assert made is not None
        return made

    return Trouble(folder / "windowpane.db", message)


@pytest.fixture
def operator(site: Callable[..., Any], troubled: Trouble) -> Person:
    """Before a store in which one session needs attention now."""
    return Person(site(troubled.store))


def test_which_session_is_in_trouble_now_and_why(operator: Person) -> None:
    operator.opens()
    operator.reads("1 of 1 live session needs you")

    row = operator.opens_row(FLEET, lambda _row: True)

    assert float(row[0]) > 0.9
    operator.page.wait_for_url(f"**session={RED}**")
    operator.site.settle()
    operator.reads("Red at turn 57")
    operator.reads("2 alerts firing")
    assert len(operator.actions) == 2


def test_the_phrases_of_a_headline_open_what_they_are_about(operator: Person) -> None:
    headline = operator.page.locator(".st-key-headline")
    pages = operator.page.context.pages
    operator.opens()
    operator.clicks(headline.get_by_role("link", name="1 with a critical alert"))
    operator.page.wait_for_url("**/?live=critical")
    operator.site.settle()

    operator.site.open("session", session=RED)
    operator.clicks(headline.get_by_role("link", name=" at turn "))
    operator.page.wait_for_url("**turn=57*")
    operator.site.settle()
    operator.clicks(headline.get_by_role("link", name="2 alerts firing"))
    operator.page.wait_for_url("**tab=alerts*")
    operator.site.settle()
    expect(operator.page.get_by_role("radio", name="Alerts")).to_be_checked()
    assert "turn=" in operator.page.url
    assert operator.page.context.pages == pages


def test_an_alert_link_opens_the_turn_and_the_runbook(operator: Person, troubled: Trouble) -> None:
    message = troubled.message(local_dashboard(troubled.store))
    assert message.link is not None
    assert message.link.startswith(operator.site.url)
    path, _, query = message.link.removeprefix(f"{operator.site.url}/").partition("?")

    operator.opens(path, **dict(parse_qsl(query)))

    operator.reads(f"Turn {message.turn}:")
    operator.reads("What to do.")
    operator.reads("critical: Window in red")
    operator.site.assert_shows(f"{message.summary}.")


def test_a_parent_and_its_children(operator: Person) -> None:
    operator.opens("session", session=PARENT)
    operator.opens_tab("Cost", "Sub-agents")
    operator.site.assert_shows("≈$1.48 together, 2 sessions.")
    cells = operator.cells("Sub-agents of this session")
    child = next(cell for cell in cells if cell.startswith(f"session?session={quote(PARENT, safe='')}%2Fagent-"))

    operator.opens("session", session=f"{PARENT}/{child.partition('%2F')[2].partition('#')[0]}")
    operator.clicks(operator.page.get_by_role("link", name="Sub-agent of"))

    operator.page.wait_for_url(f"**session={PARENT}&turn=3**")
    operator.page.get_by_role("heading", name="Turn 3:").wait_for()
    assert len(operator.actions) == 5


def test_the_biggest_drops_of_a_long_session(reader: Person) -> None:
    reader.opens("session", session=LONGEST)
    reader.opens_tab("Log", "Turns")
    name = "Turns of the session with the tokens of each component"
    reader.sorts(name, at=240)  # by the change: the largest drop first

    row = reader.opens_row(name, lambda row: row[0].replace(",", "").isdigit())

    reader.page.get_by_role("heading", name=f"Turn {row[0]}:").wait_for()
    assert len(reader.actions) <= 5


def test_prove_to_an_auditor_that_nothing_was_changed(reader: Person, tmp_path: Path) -> None:
    reader.opens("audit")
    reader.clicks(reader.page.get_by_role("button", name="Verify chain"))
    with reader.page.expect_download(timeout=60_000) as download:
        reader.clicks(reader.page.get_by_role("button", name="Certificate of"))
    path = tmp_path / "certificate.txt"
    download.value.save_as(path)

    text = path.read_text(encoding="utf-8")

    assert "INTACT" in text
    assert "Last head" in text
    assert len(reader.actions) == 3


def test_hand_over_the_report_of_a_session(reader: Person, tmp_path: Path) -> None:
    reader.opens("session", session=COMPACTED)
    with reader.page.expect_download(timeout=60_000) as download:
        reader.clicks(reader.page.get_by_role("button", name="Report"))
    path = tmp_path / "report.html"
    download.value.save_as(path)

    html = path.read_text(encoding="utf-8")

    assert html.startswith("<!doctype html>")
    assert "<details class=appendix>" in html
    assert COMPACTED not in html
    assert 'src="http' not in html


def test_what_filled_the_window_at_a_turn(reader: Person) -> None:
    reader.opens("session", session=COMPACTED, turn="30")
    reader.opens_tab("Window", "By size")

    name = "The ten largest parts of the window"
    sizes = [int(row[1].replace(",", "")) for row in reader.rows(name)]
    assert sizes == sorted(sizes, reverse=True)

    reader.opens_row(name, lambda row: row[0].startswith(("Read", "Bash", "Grep", "Edit")))
    reader.page.wait_for_url("**block=*")
    reader.reads("Its life in this session")
    assert len(reader.actions) == 3


def test_what_stale_content_cost_and_what_to_change(reader: Person) -> None:
    reader.opens("session", session=LONGEST)
    reader.clicks(reader.page.get_by_role("link", name="sending").first)
    reader.site.settle()
    reader.reads("was old and not used again")
    reader.reads("$")
    reader.clicks(reader.page.get_by_role("button", name="Try in Replay").first)
    reader.page.wait_for_url("**/replay?simulate=*")
    reader.site.settle()

    reader.reads("The form is filled in")
    expect(reader.page.get_by_role("button", name="Simulate")).to_be_visible()
    assert len(reader.actions) == 3


def test_what_the_tools_of_a_server_cost_in_a_repository(site: Callable[..., Any], tmp_path: Path) -> None:
    """Three actions from Fleet: Trends, the server, the repository."""
    store = SqliteStore(tmp_path / "windowpane.db")
    fill_with_a_server(store)
    store.close()
    person = Person(site(tmp_path / "windowpane.db"))
    person.opens()
    person.clicks(person.page.get_by_role("link", name="Trends"))
    person.page.wait_for_url("**/trends")
    person.site.settle()
    person.picks("Sum by", "tool of db")
    person.page.wait_for_url("**top=mcp__db*")
    person.site.settle()
    person.picks("Repository", "shop")
    person.page.wait_for_url("**repository=shop*")

    person.reads("mcp__db__query costs most: $")
    assert len(person.actions) == 4
