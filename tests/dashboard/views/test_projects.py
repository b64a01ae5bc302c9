"""The choice of a project on the pages that list sessions."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from windowpane.store.embedded import SqliteStore

OpenPage = Callable[..., AppTest]


@pytest.fixture
def assigned(small_store: SqliteStore) -> SqliteStore:
    """Sessions of two projects, and one without."""
    small_store.assign_project("short", "shop")
    small_store.assign_project("unknown-limit", "bank")
    return small_store


def choice(app: AppTest) -> list[str]:
    """Return the projects that the page offers; empty without a choice."""
    return next((list(box.options) for box in app.selectbox if box.label == "Project"), [])


@pytest.mark.parametrize("page", ["fleet", "trends", "alerts", "search", "audit"])
def test_a_page_shows_the_project_of_its_address(
    page: str, assigned: SqliteStore, open_page: OpenPage, page_text: Callable[..., str]
) -> None:
    app = open_page(page, project="shop")

    assert not app.exception
    assert choice(app) == ["bank", "shop"]
    assert app.query_params["project"] in ("shop", ["shop"])
    assert assigned.project_names() == ["bank", "shop"]
    text = page_text(app)
    assert "unknown-limit" not in text
    if page in ("fleet", "audit"):
        assert "1 session" in text


def test_a_store_with_at_most_one_project_offers_no_choice(small_store: SqliteStore, open_page: OpenPage) -> None:
    small_store.assign_project("short", "shop")
    assert choice(open_page("fleet")) == []
