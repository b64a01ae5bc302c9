"""What a person comes to the dashboard for: each task in at most five actions, on real recordings."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright.sync_api")
from playwright.sync_api import TimeoutError  # noqa: A004  # only where the browser is installed

pytestmark = pytest.mark.browser

MOST_ACTIONS = 5
SMALL, LARGE = "pi-managed-8k", "pi-managed-32k"
PATIENCE = 30_000
FIRINGS = "Alerts, the latest first"


@dataclass
class Person:
    """Somebody in front of the page, whose actions are counted."""

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

    def clicks(self, place: Any, **options: Any) -> None:
        self._acts(f"click {place}")
        place.click(**options)

    def types(self, place: Any, text: str) -> None:
        """Type into a field and press Enter."""
        self._acts(f"type {text}")
        place.fill(text)
        place.press("Enter")

    def picks(self, label: str, text: str) -> None:
        """Choose from a list by typing what it begins with."""
        self.types(self.page.get_by_role("combobox", name=label), text)

    def chooses(self, label: str, number: int) -> None:
        """Open a list and click its entry of that number, from 1.

        The list closes again where the page is drawn anew in that moment, so it is opened as often as it takes.
        """
        self._acts(f"open list {label}")
        self._acts(f"click entry {number}")
        option = self.page.get_by_role("option").nth(number - 1)
        for _ in range(10):
            self.page.get_by_role("combobox", name=label).click(timeout=PATIENCE)
            try:
                option.click(timeout=3_000)
            except TimeoutError:
                self.page.keyboard.press("Escape")
            else:
                return
        pytest.fail(f"the list {label} never stayed open")

    def adds(self, label: str, text: str) -> None:
        """Choose one more from a list of several, and leave the list."""
        self.picks(label, text)
        self.page.keyboard.press("Escape")

    def reads(self, text: str) -> None:
        """See a text on the page."""
        self.page.get_by_text(text).first.wait_for(timeout=PATIENCE)

    def waits(self, condition: Callable[[], bool], what: str) -> None:
        """Look until it is so."""
        for _ in range(60):
            if condition():
                return
            self.page.wait_for_timeout(200)
        pytest.fail(f"not so: {what}")

    def table(self, name: str) -> Any:
        """The table with this text alternative."""
        return self.page.locator(
            "[data-testid=stDataFrame]", has=self.page.locator(f"button[aria-label$=': {name}']")
        ).first

    def cells(self, name: str) -> list[str]:
        """The cells of a table, as a screen reader finds them."""
        cells = self.table(name).locator("canvas table td")
        cells.first.wait_for(state="attached", timeout=PATIENCE)
        return list(cells.all_text_contents())


@pytest.fixture
def person(site: Callable[..., Any], demo_store: Path) -> Person:
    return Person(site(demo_store))


def test_find_the_session_that_overflowed(person: Person) -> None:
    """Alerts, the alert's name, and from there into the session at that turn."""
    person.opens("alerts")
    person.picks("Alert", "Window overflowed")
    person.page.wait_for_url("**alert=overflow*", timeout=PATIENCE)
    person.site.settle()
    person.reads("critical: Window overflowed")
    person.waits(
        lambda: all("session=pi-managed" in cell for cell in person.cells(FIRINGS) if "session=" in cell),
        "only sessions that overflowed are listed",
    )

    person.clicks(person.page.get_by_text("Open the session at turn"))

    person.reads("Overflow at turn")
    assert "session=pi-managed" in person.page.url


def test_what_left_at_turn_40_and_why(person: Person) -> None:
    """The turn's address shows what had left by then, the latest first, with the reason."""
    person.opens("session", session=SMALL, turn="40")

    person.reads("Turn 40:")
    cells = person.cells("Blocks that had left the window, latest first")

    assert any(cell.startswith(("evicted: ", "compressed: ")) for cell in cells)
    assert any(cell.isdigit() and int(cell) <= 40 for cell in cells)


def test_what_the_second_compaction_lost(person: Person) -> None:
    """Choose the compaction, open its facts: the lost ones come first, with their texts."""
    person.opens("session", session=SMALL)
    person.chooses("Compression", 2)
    person.reads("facts, lost ones first")
    person.clicks(person.page.get_by_text("facts, lost ones first"))

    cells = person.cells("Facts of this compression")

    assert cells[0] == "lost"
    assert len(cells[2]) > 1


def test_the_eviction_that_made_the_agent_read_a_file_twice(person: Person) -> None:
    """The list of what came back names its cause; choosing it opens the turn of the eviction."""
    person.opens("session", session=LARGE)
    cells = person.cells("Blocks that had left and were needed again, the dearest first")
    reads = [at for at, cell in enumerate(cells) if cell.startswith("tool result")]
    assert reads
    assert any(cell.startswith("evicted: ") for cell in cells)
    left = cells[reads[0] + 1]

    table = (
        person.table("Blocks that had left and were needed again, the dearest first")
        .locator(".dvn-scroller")
        .first
    )
    person.clicks(table, position={"x": 17, "y": 52})

    person.page.get_by_role("heading", name=f"Turn {left}:").wait_for(timeout=PATIENCE)
    assert f"turn={left}" in person.page.url


def test_export_the_audit_log_of_one_session(person: Person, tmp_path: Path) -> None:
    """The download holds that session's events and no other's."""
    person.opens("audit", session=LARGE)
    with person.page.expect_download(timeout=60_000) as download:
        person.clicks(person.page.get_by_role("link", name="JSON Lines"))
    path = tmp_path / "events.jsonl"
    download.value.save_as(path)

    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

    assert len(lines) > 1_000
    assert {line["event"]["session_id"] for line in lines} == {LARGE}


def test_decide_between_two_policies(person: Person) -> None:
    """Choose a session, simulate the two policies offered, read which comes out best and its configuration."""
    person.opens("replay")
    person.adds("Recorded sessions", "marshmallow")
    person.clicks(person.page.get_by_role("button", name="Simulate"))

    person.reads("comes out best")

    words = person.site.words()
    assert "Best overall" in words
    code = person.page.locator("[data-testid=stCode]").first
    code.wait_for(timeout=PATIENCE)
    assert "policy: " in code.inner_text()
    assert (
        len(
            [
                cell
                for cell in person.cells("Figures of each setup over all its sessions")
                if cell.endswith(", 32k")
            ]
        )
        == 2
    )
