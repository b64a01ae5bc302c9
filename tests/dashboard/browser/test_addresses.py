"""The address holds the whole view: it can be shared, and Back and Forward restore it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright.sync_api")
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

FIRST_ROW = {"x": 17, "y": 52}


@pytest.fixture
def here(site: Callable[..., Any], demo_store: Path) -> Any:
    return site(demo_store)


SEARCH = "Search or filter"


def choose(here: Any, label: str, text: str, address: str) -> None:
    """Pick from a list by typing, and wait for the address."""
    box = here.page.get_by_role("combobox", name=label)
    box.fill(text)
    box.press("Enter")
    here.page.wait_for_url(address)
    here.settle()


def filters(here: Any) -> Any:
    return here.page.locator("[data-testid=stMultiSelect] [data-tag]")


def chosen(here: Any, label: str) -> Any:
    return here.page.get_by_role("combobox", name=label)


def test_back_takes_the_last_filter_off_and_forward_puts_it_on(here: Any) -> None:
    page = here.open()
    choose(here, SEARCH, "agent: tau", "**?agent=tau-bench")
    choose(here, SEARCH, "zone: ◕ orange", "**&zone=orange")
    page.get_by_text("No session matches").wait_for()

    page.go_back()

    expect(filters(here)).to_have_text(["agent: tau-bench"])
    page.get_by_text(re.compile(r"^10 sessions")).wait_for()

    page.go_forward()

    expect(filters(here)).to_have_text(["agent: tau-bench", "zone: ◕ orange"])
    here.assert_at("**?agent=tau-bench&zone=orange")


SEARCH_BOXES = """
window.most = 0;
(function look() {
  const fields = [...document.querySelectorAll("[data-testid=stMultiSelect]")];
  const boxes = fields.filter((box) => box.checkVisibility());
  window.most = Math.max(window.most, boxes.length);
  requestAnimationFrame(look);
})();
"""
"""Keeps how many search fields were seen at once."""


def test_a_filter_that_back_changes_is_never_there_twice(here: Any) -> None:
    page = here.open()
    choose(here, SEARCH, "zone: ◕ orange", "**?zone=orange")
    page.evaluate(SEARCH_BOXES)

    page.go_back()
    expect(filters(here)).to_have_count(0)
    here.settle()

    assert page.evaluate("window.most") == 1


def test_back_from_a_session_returns_to_the_filtered_fleet(here: Any) -> None:
    page = here.open(zone="green")
    page.locator("[data-testid=stDataFrame] .dvn-scroller").first.click(position=FIRST_ROW)
    page.wait_for_url("**/session?session=*")
    here.settle()

    page.go_back()

    page.wait_for_url("**/?zone=green")
    expect(filters(here)).to_have_text(["zone: ○ green"])


def test_back_returns_to_the_turn_before(here: Any) -> None:
    page = here.open("session", session="pi-managed-8k", turn="40")
    page.get_by_role("heading", name="Turn 40:").wait_for()
    page.get_by_role("slider").first.focus()
    page.keyboard.press("ArrowRight")
    page.get_by_role("heading", name="Turn 41:").wait_for()
    page.wait_for_url("**turn=41")
    here.settle()

    page.go_back()

    page.get_by_role("heading", name="Turn 40:").wait_for()
    expect(page.get_by_role("slider").first).to_have_attribute("aria-valuetext", "turn 40")
    here.assert_at("**turn=40")


def test_a_session_opens_as_it_was_looked_at(here: Any) -> None:
    page = here.open("session", session="pi-managed-8k", turn="40", compression="2", events="noteworthy")
    page.get_by_role("heading", name="Turn 40:").wait_for()

    expect(chosen(here, "Compaction")).to_have_value("turn 5: nothing lost")
    page.get_by_role("tab", name="Log").click()
    expect(page.get_by_role("radio", name="main events of the session")).to_be_checked()


def test_what_is_changed_on_a_session_is_in_the_address(here: Any) -> None:
    page = here.open("session", session="pi-managed-8k", turn="40", compression="2")
    page.get_by_role("heading", name="Turn 40:").wait_for()
    page.get_by_role("tab", name="Log").click()
    page.wait_for_url("**tab=events**")
    here.settle()
    page.get_by_text("main events of the session").click()
    page.wait_for_url("**events=noteworthy**")
    here.settle()
    assert "compression=2" in page.url

    page.get_by_role("slider").first.focus()
    page.keyboard.press("ArrowRight")

    page.wait_for_url("**turn=41**")
    here.settle()
    assert "compression" not in page.url
    assert "events=noteworthy" in page.url


def test_back_undoes_a_search_and_a_page(here: Any) -> None:
    page = here.open("audit")
    page.get_by_role("button", name="Later").click()
    page.wait_for_url("**after=100")
    here.settle()
    choose(here, SEARCH, "hybrid", "**text=hybrid")

    page.go_back()
    page.get_by_text("seq 101 to 200 shown").wait_for()
    expect(filters(here)).to_have_count(0)
    here.settle()
    page.go_back()

    page.get_by_text("seq 1 to 100 shown").wait_for()
    here.assert_at("**/audit")


def test_alerts_open_as_they_were_looked_at(here: Any) -> None:
    page = here.open("alerts", severity="critical", pick="overflow:4:pi-managed-8k")
    page.get_by_role("link", name="Turn 4 of").wait_for()
    page.get_by_role("link", name="Turn 4 of").click()
    page.wait_for_url("**/session?session=pi-managed-8k&turn=4&alert=overflow**")

    page.go_back()

    page.wait_for_url("**/alerts?**")
    page.get_by_role("link", name="Turn 4 of").wait_for()
    here.settle()
    assert "severity=critical" in page.url
    assert "pick=overflow" in page.url
