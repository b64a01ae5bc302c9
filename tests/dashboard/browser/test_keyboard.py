"""Everything can be done with the keyboard, and the focus is visible."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright.sync_api")
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

PAGES = (
    "",
    "session?session=pi-managed-8k&turn=40",
    *(
        pytest.param(path, marks=pytest.mark.matrix)
        for path in ("audit", "compare", "replay", "alerts?severity=critical")
    ),
)

CONTROLS = """() => {
  const seen = element => {
    const box = element.getBoundingClientRect();
    return box.width > 0 && box.height > 0 && getComputedStyle(element).visibility !== "hidden"
      && !element.disabled && element.tabIndex >= 0 && !element.closest("[aria-hidden=true]")
      && !element.closest("details:not([open]) > :not(summary)")
      && !(element.getAttribute("role") === "radio" && element.getAttribute("aria-checked") === "false");
  };
  const kinds = "button, a[href], input, textarea, summary, canvas[tabindex], [role=slider], [tabindex='0']";
  const all = document.querySelectorAll(`[data-testid=stMain] :is(${kinds})`);
  return [...all].filter(seen).map((element, place) => {
    element.dataset.place = String(place);
    return `${element.tagName} ${element.getAttribute("aria-label") || element.innerText}`.slice(0, 60);
  });
}"""
"""Names every control that a pointer could use; of a group of radios, the chosen one, as arrow keys walk it."""

FOCUSED = """() => {
  const element = document.activeElement;
  const style = getComputedStyle(element);
  const ring = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
  return [element.dataset.place ?? "", ring];
}"""


def drawn_controls(here: Any) -> list[str]:
    """Return the controls once no more are added: those of tables and headlines come after the page's answer."""
    controls: list[str] = []

    def are_all_drawn() -> bool:
        nonlocal controls
        before, controls = controls, here.page.evaluate(CONTROLS)
        return bool(controls) and controls == before

    here.settle()
    here.waits(are_all_drawn, "no more controls are drawn")
    return controls


@pytest.mark.parametrize("path", PAGES)
def test_every_control_is_reached_and_seen(site: Callable[..., Any], demo_store: Path, path: str) -> None:
    here = site(demo_store)
    page = here.open(path)
    page.locator(":is([data-testid=stDataFrame] canvas, [data-testid=stForm]):visible").first.wait_for()
    controls = drawn_controls(here)
    ringed: dict[str, bool] = {}

    for _ in range(len(controls) + 40):
        page.keyboard.press("Tab")
        index, ring = page.evaluate(FOCUSED)
        ringed[index] = ringed.get(index, True) and ring

    assert controls
    assert [name for index, name in enumerate(controls) if str(index) not in ringed] == []
    assert [name for index, name in enumerate(controls) if not ringed[str(index)]] == []


def test_letters_go_to_the_event_before_and_after(site: Callable[..., Any], seen_store: Path) -> None:
    here = site(seen_store)
    page = here.open("session", session="refactor-api", turn="9")
    page.get_by_role("heading", name="Turn 9:").wait_for()
    here.settle()

    page.keyboard.press("n")
    page.get_by_role("heading", name="Turn 14:").wait_for()
    page.wait_for_url("**turn=14")
    here.settle()
    page.keyboard.press("n")
    page.get_by_role("heading", name="Turn 17:").wait_for()
    page.wait_for_url("**turn=17")
    here.settle()
    page.keyboard.press("p")

    page.get_by_role("heading", name="Turn 14:").wait_for()
    here.assert_at("**turn=14")


def test_a_session_is_opened_from_the_fleet_with_the_keyboard(site: Callable[..., Any], seen_store: Path) -> None:
    here = site(seen_store)
    page = here.open()
    grid = page.locator("[data-testid=data-grid-canvas]").first
    grid.wait_for()
    here.settle()

    grid.focus()
    expect(grid).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(grid.locator("[role=gridcell][aria-selected=true]")).to_have_count(1)
    page.keyboard.press("Shift+Space")

    here.assert_at("**/session?session=*")
    page.get_by_text("Lost or contradicted").first.wait_for()
    expect(page.get_by_role("heading", name=re.compile(r"^Turn \d+:"))).to_have_count(1)


def test_the_palette_finds_a_session_and_an_action(site: Callable[..., Any], seen_store: Path) -> None:
    here = site(seen_store)
    page = here.open("audit")
    field = page.get_by_role("combobox", name="Page, action or session")

    page.keyboard.press("Control+k")
    expect(field).to_be_focused()
    page.keyboard.type("refactor-api")
    page.get_by_role("option", name="refactor-api").first.wait_for()
    page.keyboard.press("Enter")
    page.wait_for_url("**/session?session=refactor-api")
    here.settle()

    page.keyboard.press("Control+k")
    expect(field).to_be_focused()
    page.keyboard.type("why this session cost")
    page.get_by_role("option", name="Show why this session cost so much").wait_for()
    page.keyboard.press("Enter")
    page.wait_for_url("**session=refactor-api&tab=cost")
    here.settle()

    page.keyboard.press("Control+k")
    expect(field).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_the_link_of_an_alert_lands_on_its_evidence(site: Callable[..., Any], demo_store: Path) -> None:
    here = site(demo_store)
    page = here.open("session", session="pi-managed-8k", turn="4", alert="overflow:4")

    expect(page.locator(".st-key-alert_line")).to_be_focused()
    here.assert_shows("critical: Window overflowed at turn 4. 11k tokens did not fit the window of 8,192")
    expect(page.get_by_test_id("stMetric").filter(has_text="Window at turn 4")).to_contain_text("129%")
