"""An open page follows the store without changing the view."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from windowpane.store.embedded import SqliteStore

pytest.importorskip("playwright.sync_api")
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

SCROLLED = "document.querySelector('[data-testid=stMain]').scrollTop"
READ = "document.querySelector('.st-key-in_window').getBoundingClientRect().top"
"""Position of the table of blocks on the screen."""


def test_the_fleet_takes_up_new_sessions_and_keeps_its_filter(
    site: Callable[..., Any], growing_store: SqliteStore, builders: Any
) -> None:
    start = time.time() - 700
    growing_store.append(builders.rich(start=start, session_id="first", agent="translator"))
    here = site(Path(growing_store.path))
    page = here.open(agent="translator")
    page.get_by_text(re.compile(r"^1 session\b")).wait_for()

    growing_store.append(builders.rich(start=start, session_id="brand-new", agent="translator"))
    growing_store.append(builders.rich(start=start, session_id="other", agent="somebody else"))

    page.get_by_text(re.compile(r"^2 sessions")).wait_for()
    here.settle()
    expect(page.get_by_test_id("stMultiSelect")).to_contain_text("agent: translator")
    assert page.url.endswith("?agent=translator")


def test_a_session_grows_and_the_reader_stays(
    site: Callable[..., Any], growing_store: SqliteStore, builders: Any
) -> None:
    """Turn and the place on the screen survive new turns; the metrics above are updated.

    The first findings appear with them, above what is read.
    """
    now = time.time()
    events = builders.plain("growing", start=now - 100, turns=60, limit_tokens=90_000, end=False)
    cut = next(position for position, event in enumerate(events) if event.context.turn == 40)
    growing_store.append(events[:cut])
    here = site(Path(growing_store.path))
    page = here.open("session", session="growing", turn="9")
    page.get_by_role("heading", name="Turn 9:").wait_for()
    page.get_by_text("39 turns").first.wait_for()
    page.locator("[data-testid=stDataFrame] canvas").first.wait_for()
    here.settle()
    page.evaluate(f"{SCROLLED} = 400")
    place = page.evaluate(READ)

    growing_store.append(events[cut:])

    page.get_by_text("60 turns").first.wait_for(state="attached")
    here.settle()
    expect(page.get_by_role("heading", name="Turn 9:")).to_have_count(1)
    assert "turn=9" in page.url
    assert page.evaluate(READ) == pytest.approx(place, abs=2)


def test_the_last_turn_follows_the_session(
    site: Callable[..., Any], growing_store: SqliteStore, builders: Any
) -> None:
    events = builders.plain("followed", start=time.time() - 100, turns=60, limit_tokens=90_000, end=False)
    cut = next(position for position, event in enumerate(events) if event.context.turn == 40)
    growing_store.append(events[:cut])
    here = site(Path(growing_store.path))
    page = here.open("session", session="followed")
    page.get_by_role("heading", name="Turn 39:").wait_for()

    growing_store.append(events[cut:])

    page.get_by_role("heading", name="Turn 60:").wait_for()
    here.settle()
    assert "turn=" not in page.url
