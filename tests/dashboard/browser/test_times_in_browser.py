"""Times are those of the browser's zone on every page, with UTC where one points."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.browser

STAMP = re.compile(r"(\d{4}-\d\d-\d\d \d\d):(\d\d:\d\d)([+-]\d\d:\d\d)")


@pytest.mark.parametrize(
    "path",
    [
        "audit?types=alert.fired",
        pytest.param("session?session=pi-managed-8k&turn=40&tab=turns", marks=pytest.mark.matrix),
        pytest.param("alerts", marks=pytest.mark.matrix),
    ],
)
def test_tables_show_the_browsers_time(site: Callable[..., Any], demo_store: Path, path: str) -> None:
    here = site(demo_store, zone="Asia/Kolkata")
    page = here.open(path)
    page.locator("canvas table td").filter(has_text=STAMP).first.wait_for(state="attached")
    here.settle()

    cells = page.locator("canvas table td").filter(has_text=STAMP).all_text_contents()

    assert cells
    assert {STAMP.match(cell).group(3) for cell in cells} == {"+05:30"}  # type: ignore[union-attr]


def test_a_firing_has_local_time_and_utc_where_one_points(site: Callable[..., Any], demo_store: Path) -> None:
    here = site(demo_store, zone="Asia/Kolkata")
    page = here.open("alerts")
    fired = page.get_by_test_id("stCaptionContainer").filter(
        has_text=re.compile(r"ired at turn \d+, \d{4}-\d\d-\d\d \d\d:\d\d:\d\d;")
    )

    fired.get_by_test_id("stTooltipHoverTarget").first.hover()

    page.get_by_text(re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$")).wait_for()
