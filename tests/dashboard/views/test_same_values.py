"""Pages draw the same values of a session as every other surface."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest
from tests.dashboard.surfaces import StoredSession, Values, compared, disagreements, of_row

from windowpane.store.embedded import SqliteStore

OpenPage = Callable[..., AppTest]
ID = "refactor-api"
COMPARED = {
    "turns": "turns",
    "tokens sent": "tokens sent",
    "cost": "cost",
    "needed again": "regrets",
    "compactions": "compressions",
}


@pytest.fixture
def session(small_store: SqliteStore) -> StoredSession:
    """A session with compressions, evictions, regrets and alerts."""
    row = small_store.session(ID)
    assert row is not None
    return StoredSession(small_store, row)


def drawn_metrics(page: AppTest) -> Values:
    """The metrics at the top of the session page."""
    shown = {metric.label: metric.value for metric in page.metric}
    return {"cost": shown["Cost"]}


def drawn_row(page: AppTest, column: str, value: str) -> dict[str, Any]:
    """The first line of the page's tables in which *column* contains *value*."""
    for table in page.dataframe:
        frame = table.value
        if column in frame:
            found = frame[frame[column].astype(str).str.contains(value, regex=False)]
            if len(found):
                return dict(found.iloc[0])
    raise AssertionError(f"no table has {value!r} in {column!r}")


def test_pages_draw_the_values_of_the_session(session: StoredSession, open_page: OpenPage) -> None:
    fleet = drawn_row(open_page("fleet"), "session", ID)
    compare = open_page("compare", one=ID, other="short")
    cells = next(table.value for table in compare.dataframe if "measure" in table.value)
    values = dict(zip(cells["measure"], cells["A"], strict=True))

    drawn: dict[str, Values] = {
        "list": {**of_row(session), "burn rate": session.timeline.latest.burn_rate,  # type: ignore[union-attr]
                 "cached share": session.row.cache_read_tokens / session.row.input_tokens},
        "session page": drawn_metrics(open_page("session", session=ID)),
        "fleet page": {"turns": fleet["turns"], "utilization": fleet["window"], "total cost": fleet["cost"]},
        "compare page": {label: values[name] for name, label in COMPARED.items()},
    }  # fmt: skip

    assert compared(ID, drawn) == []
    assert disagreements(session) == []
    assert isinstance(cells, pd.DataFrame)
    assert session.row.last_at is not None
    assert session.row.last_at < time.time()
