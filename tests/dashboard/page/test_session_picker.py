"""The lists of sessions to choose from."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from windowpane.store.embedded import SqliteStore
from windowpane_dashboard.page import session_picker


@pytest.mark.parametrize("page", ["session"])
def test_a_session_older_than_the_offered_ones_has_its_title(
    page: str,
    empty_store: SqliteStore,
    builders: Any,
    open_page: Callable[..., AppTest],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session_picker, "OFFERED", 1)
    now = time.time()
    for name, start in (("older", now - 9_000), ("recent", now - 900)):
        empty_store.append(builders.plain(name, start=start, turns=2, limit_tokens=9_000, end=True))
    empty_store.give_title("older", "Rename the flags")

    app = open_page(page, session="older")

    picker = next(one for one in app.selectbox if one.label == "Session")
    assert not app.exception
    assert picker.value == "older"
    assert any(option.startswith("Rename the flags") for option in picker.options)
