"""The tasks of a user: each takes at most five actions, on real recordings."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from windowpane.config.loading import load_config
from windowpane.core.digests import keyed_digester
from windowpane.core.events import AlertFired
from windowpane.ingest.importer import import_paths
from windowpane.models.catalog import PackagedCatalog
from windowpane.models.tokens import counter_for
from windowpane.sources.discovery import all_readers
from windowpane.sources.player import PlaybackSettings
from windowpane.store.sqlite import SqliteStore

pytest.importorskip("playwright.sync_api")
from playwright.sync_api import expect  # only where the browser is installed

pytestmark = pytest.mark.browser

MOST_ACTIONS = 5
SMALL, LARGE = "pi-managed-8k", "pi-managed-32k"
FLEET, FIRINGS = "Sessions, live ones first, then by pressure", "Alerts, the latest first"
REMOVED = "Blocks removed from the window, latest first"
COMPACTED = "839b35f7-4dbd-4d93-9772-3c272cc87caa"
LONGEST = "d703a1a9-1b7b-4fb1-b512-c9738b1fe617"
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
        index.fill(text)
        index.press("Enter")

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
        """The rows of a table that are in sight, as a screen reader finds them."""
        self.site.settle()
        table = self.table(name)
        table.locator("canvas table td").first.wait_for(state="attached")
        result = table.evaluate(
            "grid => [...grid.querySelectorAll('canvas table tr')]"
            ".map(row => [...row.querySelectorAll('td')].map(cell => cell.textContent))"
        )
        return [row for row in result if row]

    def opens_row(self, name: str, holds: Callable[[list[str]], bool]) -> list[str]:
        """Select the first row for which *holds* is true; returns its cells."""
        self.site.waits(lambda: any(map(holds, self.rows(name))), f"a row of that kind in {name}")
        rows = self.rows(name)
        index = next(at for at, row in enumerate(rows) if holds(row))
        scroller = self.table(name).locator(".dvn-scroller").first
        self.clicks(scroller, position={"x": 17, "y": FIRST_ROW_PIXELS + ROW_PIXELS * index})
        return rows[index]

    def opens_session(self, session_id: str) -> None:
        """Open the session from the fleet page."""
        self.opens()
        self.opens_row(FLEET, lambda row: any(cell.startswith(f"session?session={session_id}#") for cell in row))
        self.page.wait_for_url(f"**/session?session={session_id}")
        self.site.settle()

    def opens_tab(self, name: str) -> None:
        """Open a tab of the session page."""
        self.clicks(self.page.get_by_role("tab", name=name, exact=True))
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


def test_find_the_session_that_overflowed(person: Person) -> None:
    """The fleet shows the worst zone of each session; its row opens it, and the headline names the turn."""
    person.opens()

    row = person.opens_row(FLEET, lambda row: "✕ overflow" in row)

    address = next(cell for cell in row if cell.startswith("session?session=")).partition("#")[0]
    person.page.wait_for_url(f"**/{address}")
    person.reads("Overflow at turn")
    assert len(person.actions) == 2


def test_find_what_overflowed_among_the_alerts(person: Person) -> None:
    """Filtering by the alert lists only sessions that overflowed, with a link to the turn."""
    person.opens("alerts")
    person.picks("Alert", "Window overflowed")
    person.page.wait_for_url("**alert=overflow*")
    person.site.settle()
    person.reads("critical: Window overflowed")
    person.site.waits(
        lambda: all("session=pi-managed" in cell for cell in person.cells(FIRINGS) if "session=" in cell),
        "only sessions that overflowed are listed",
    )

    person.clicks(person.page.get_by_text("Open the session at turn"))

    person.reads("Overflow at turn")
    person.site.assert_at("**session=pi-managed*")


@pytest.mark.parametrize(("who", "session"), [("reader", COMPACTED), ("person", SMALL)])
def test_find_what_was_removed_at_turn_40(request: pytest.FixtureRequest, who: str, session: str) -> None:
    """In an imported and a managed session: type the turn, read the removed blocks, reasons and replacements."""
    person: Person = request.getfixturevalue(who)
    person.opens_session(session)
    person.selects_turn(40)
    person.site.waits(
        lambda: all(int(row[0]) <= 40 for row in person.rows(REMOVED)), "the table follows the heading"
    )

    rows = person.rows(REMOVED)

    turns = [int(row[0]) for row in rows]
    assert turns == sorted(turns, reverse=True)
    assert max(turns) <= 40
    assert all(row[3].startswith(("evicted: ", "compressed: ", "window rollover", "replaced")) for row in rows)
    assert any(re.fullmatch(r"(placeholder|summary), [\d,]+ tokens?", row[4]) for row in rows)


def test_what_the_second_compaction_lost(person: Person) -> None:
    """Choose the compaction and read its facts: the lost ones come first, with their texts."""
    person.opens_session(SMALL)
    person.opens_tab("Compressions")
    person.picks("Compression", "2 of")
    person.page.wait_for_url("**compression=2*")
    person.site.settle()

    facts = person.rows("Facts of this compression")

    assert facts[0][0] == "lost"
    assert len(facts[0][2]) > 1


@pytest.mark.parametrize(
    ("who", "session", "tool"), [("person", LARGE, "bash"), ("maker", "refactor-api", "read")]
)
def test_the_eviction_that_made_the_agent_read_a_file_twice(
    request: pytest.FixtureRequest, who: str, session: str, tool: str
) -> None:
    """Regrets are listed with their cause; selecting an evicted result opens the turn of its removal."""
    person: Person = request.getfixturevalue(who)
    person.opens_session(session)
    person.opens_tab("Regrets")

    row = person.opens_row(
        "Removed blocks that were needed again, the largest first",
        lambda row: row[0] == f"tool result of {tool}" and row[2].startswith("evicted: "),
    )

    removed, again = row[1], row[3]
    assert int(removed) < int(again)
    person.page.get_by_role("heading", name=f"Turn {removed}:").wait_for()
    person.page.wait_for_url(f"**turn={removed}**")


def test_export_the_audit_log_of_one_session(reader: Person, tmp_path: Path) -> None:
    """From the fleet to the audit page, the session, and the download: its events and no other's."""
    reader.opens()
    reader.clicks(reader.page.get_by_role("link", name="Audit"))
    reader.page.wait_for_url("**/audit")
    reader.site.settle()
    reader.picks("Session", LONGEST)
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

    person.reads("Best overall")
    setups = [row[0] for row in person.rows("Values of each setup over all its sessions")]
    assert sorted(setup.split(",")[0] for setup in setups) == ["as recorded", "fifo", "hybrid"]
    headline = person.page.get_by_text("comes out best").first.inner_text()
    assert headline.startswith(f"{load_config(path).eviction.policy}, ")
    assert path.name == "windowpane.yml"
    assert len(person.actions) == 4


@pytest.fixture
def searcher(site: Callable[..., Any], captured: Path) -> Person:
    """Before a store with a recorded session and its texts."""
    return Person(site(captured))


def test_find_a_word_and_the_life_of_its_block(searcher: Person) -> None:
    """Three actions: the search page, a part of a word, the hit; its text and its life are beside the list."""
    searcher.opens("search")
    searcher.types(searcher.page.get_by_role("textbox", name="Search in texts"), "GeminiBeforeToo")
    row = searcher.opens_row("Texts that match, the latest first", lambda row: "tool result" in " ".join(row))

    assert "GeminiBeforeToo" in " ".join(row)
    searcher.reads("Its life in this session")
    searcher.site.assert_shows("Added as tool result")
    expect(searcher.page.locator(".st-key-block_panel code").first).to_contain_text("GeminiBeforeToo")
    assert len(searcher.actions) <= 4


def test_when_a_text_was_lost_and_what_replaced_it(searcher: Person) -> None:
    """Four actions: the search, the hit, the turn of its removal, where the summary is read beside the window."""
    searcher.opens("search", text="handleGeminiBeforeTool")
    searcher.opens_row("Texts that match, the latest first", lambda row: "18" in row)
    searcher.site.assert_shows(re.compile("Compressed by compaction with 1[0-9]+ other blocks"))
    searcher.site.assert_shows(re.compile("Replaced by a summary of 3,5[0-9]+ tokens"))
    replaced = searcher.page.locator(".st-key-block_panel [data-testid=stPageLink] a", has_text="Turn 31")
    searcher.clicks(replaced.last)

    searcher.page.get_by_role("heading", name="Turn 31:").wait_for()
    searcher.site.settle()
    searcher.site.assert_shows("Summary, ")
    searcher.site.assert_shows("This session is being continued from a previous conversation")
    assert len(searcher.actions) <= 4


def test_read_a_block_of_the_strip(searcher: Person) -> None:
    """Two actions: the session at a turn, and a click on its strip; closing shows the tabs alone again."""
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


def test_note_what_was_seen(site: Callable[..., Any], captured: Path, tmp_path: Path) -> None:
    """Four actions: the turn with its notes, a text, the button; the turn has a mark and the chain is intact."""
    path = tmp_path / "noted.db"
    shutil.copy(captured, path)
    person = Person(site(path))
    person.opens("session", session=COMPACTED, turn="12", tab="notes")
    field = person.page.get_by_role("textbox", name="Note on turn 12")
    person.clicks(field)
    field.fill("the plan changed here")
    person.clicks(person.page.get_by_role("button", name="Add note"))

    expect(person.page.locator("[data-testid=stText]", has_text="the plan changed here")).to_be_visible()
    person.site.assert_shows("N note")
    store = SqliteStore(path)
    assert store.verify().intact
    store.close()


@pytest.fixture(scope="module")
def troubled(sessions_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of recordings with one session in trouble now, and one with a sub-agent."""
    from tests.dashboard.conftest import plain_events, rich_events

    path = tmp_path_factory.mktemp("troubled") / "windowpane.db"
    store = SqliteStore(path)
    recordings = sorted((sessions_dir / "claude_code").glob("compact_small_a6*"))
    playback = PlaybackSettings(
        digest=keyed_digester(b"k" * 32), counter_for=counter_for, catalog=PackagedCatalog()
    )
    import_paths(recordings, store, playback=playback, readers=all_readers())
    now = time.time()
    events = rich_events(start=now - 800)
    cut = next(at for at, event in enumerate(events) if isinstance(event.data, AlertFired))
    store.append(events[: cut + 1])
    child = plain_events("helper", start=now - 600, turns=3, limit_tokens=9_000, end=True)
    store.append([one._replace(context=replace(one.context, parent_session_id="refactor-api")) for one in child])
    store.close()
    return path


@pytest.fixture
def operator(site: Callable[..., Any], troubled: Path) -> Person:
    """Before a store in which one session needs attention now."""
    return Person(site(troubled))


def test_which_session_is_in_trouble_now_and_why(operator: Person) -> None:
    """The headline counts it, it is the first row, and its page names the turn and the firing alert."""
    operator.opens()
    operator.reads("1 of 1 live session needs you")

    operator.opens_row(FLEET, lambda _row: True)

    operator.page.wait_for_url("**session=refactor-api**")
    operator.site.settle()
    operator.reads("1 alert firing")
    assert len(operator.actions) <= 2


def test_the_phrases_of_a_headline_open_what_they_are_about(operator: Person) -> None:
    """The list, the turn and the tab open in the same page, and the address follows."""
    headline = operator.page.locator(".st-key-headline")
    operator.opens()
    operator.clicks(headline.get_by_role("link", name="1 with a critical alert"))
    operator.page.wait_for_url("**/?severity=critical")
    operator.site.settle()

    operator.opens("session", session="refactor-api")
    operator.clicks(headline.get_by_role("link", name=" at turn "))
    operator.page.wait_for_url("**turn=*")
    operator.site.settle()
    operator.clicks(headline.get_by_role("link", name="1 alert firing"))
    operator.page.wait_for_url("**tab=alerts*")
    operator.site.settle()
    expect(operator.page.get_by_role("tab", name="Alerts")).to_have_attribute("aria-selected", "true")
    assert "turn=" in operator.page.url
    assert len(operator.page.context.pages) == 1


def test_an_alert_link_opens_the_turn_and_the_runbook(operator: Person) -> None:
    """One action: the address of the message."""
    operator.opens("session", session="refactor-api", turn="14", alert="utilization:12")

    operator.reads("Turn 14:")
    operator.reads("What to do.")
    operator.reads("critical: Window in red")


def test_a_parent_and_its_children(operator: Person) -> None:
    """From the parent the tab of its team: one time axis, the cost, and a link to each child."""
    operator.opens("session", session="refactor-api")
    operator.opens_tab("Sub-agents")

    operator.page.locator(".st-key-team .main-svg").first.wait_for()
    operator.reads("2 sessions.")
    assert any("session?session=helper" in cell for cell in operator.cells("Sub-agents of this session"))


def test_the_biggest_jumps_of_a_long_session(reader: Person) -> None:
    """Open the table of turns, order it by change, select the first row."""
    reader.opens("session", session=LONGEST)
    reader.opens_tab("Turns")
    reader.clicks(reader.page.get_by_text("biggest changes first"))
    reader.page.wait_for_url("**order=change**")
    name = "Turns of the session with the tokens of each component"

    row = reader.opens_row(name, lambda row: row[0].replace(",", "").isdigit())

    reader.page.get_by_role("heading", name=f"Turn {row[0]}:").wait_for()
    assert len(reader.actions) <= 4


def test_prove_to_an_auditor_that_nothing_was_changed(reader: Person, tmp_path: Path) -> None:
    """Verify, and save the dated certificate."""
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
    """One button saves one file that needs nothing else, of the session and of a turn."""
    reader.opens("session", session=COMPACTED)
    with reader.page.expect_download(timeout=60_000) as download:
        reader.clicks(reader.page.get_by_role("button", name="Report"))
    path = tmp_path / "report.html"
    download.value.save_as(path)

    html = path.read_text(encoding="utf-8")

    assert html.startswith("<!doctype html>")
    assert COMPACTED in html
    assert 'src="http' not in html

    reader.selects_turn(30)
    with reader.page.expect_download(timeout=60_000) as download:
        reader.clicks(reader.page.get_by_role("button", name="Save turn"))
    assert download.value.suggested_filename == f"windowpane-{COMPACTED}-turn-30.html"
    download.value.save_as(path)
    assert "<h1>Turn 30: " in path.read_text(encoding="utf-8")


def test_what_filled_the_window_at_a_turn(reader: Person) -> None:
    """The tab sums the window of the turn by component, tool and file; the sum is the window's."""
    reader.opens("session", session=COMPACTED, turn="30")
    reader.opens_tab("What fills it")

    name = "The ten largest parts of the window, the others, and their sum"
    rows = reader.rows(name)
    sizes = [int(row[0].replace(",", "")) for row in rows]
    assert any(row[3] in ("Read", "Bash", "Grep", "Edit") for row in rows)
    assert sizes[-1] == sum(sizes[:-1])
    reader.page.locator(".st-key-fill_treemap .trace.treemap").wait_for()

    reader.opens_row(name, lambda row: row[3] in ("Read", "Bash", "Grep", "Edit"))
    reader.page.wait_for_url("**block=*")
    reader.reads("Its life in this session")
    opened = reader.page.url
    area = reader.page.locator(".st-key-fill_treemap .slice", has_text="thinking")
    reader.clicks(area.last)
    reader.page.wait_for_url(lambda url: "block=" in url and url != opened)
    reader.site.settle()
    assert len(reader.actions) == 4


def test_what_stale_content_cost_and_what_to_change(reader: Person) -> None:
    """A finding has its dollars, its turns and a replay; the form is filled in beside the session as recorded."""
    reader.opens("session", session=LONGEST)
    reader.clicks(reader.page.locator(".st-key-findings summary"))
    reader.reads("was stale")
    reader.reads("$")
    reader.clicks(reader.page.get_by_role("button", name="Try in Replay").first)
    reader.page.wait_for_url("**/replay?simulate=*")
    reader.site.settle()

    rows = reader.rows("Values of each setup over all its sessions")
    assert [row[0] for row in rows] == ["as recorded"]
    expect(reader.page.get_by_role("button", name="Simulate")).to_be_visible()
    assert len(reader.actions) == 3
