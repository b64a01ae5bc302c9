"""Pages and downloads for a visitor who may see one project: the browser receives nothing of another."""

from __future__ import annotations

import asyncio
import io
import time
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

import pyarrow.parquet
import pytest
from starlette.requests import Request
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Block, Node
from tests.sampling import EVERYTHING
from tests.two_projects import OTHER, OWN, SAME, SECRET, fill_other, fill_own

import windowpane_dashboard
from windowpane.config.dashboard import Access
from windowpane.report.html import to_html
from windowpane.report.session_report import gather
from windowpane.report.turn_report import gather_turn, turn_to_html
from windowpane.store.embedded import SqliteStore
from windowpane.store.open import open_reader
from windowpane.store.reads.project_reader import ProjectReader
from windowpane_dashboard.page import downloads, visitor
from windowpane_dashboard.page.visitor import Visitor
from windowpane_dashboard.queries.filters import AuditFilters

OpenPage = Callable[..., AppTest]

VIEWS = sorted(
    path.stem for path in (Path(windowpane_dashboard.__path__[0]) / "views").glob("*.py") if path.stem[0] != "_"
)
ADDRESSES: list[dict[str, str]] = [
    {"session": OWN[0], "one": OWN[0], "other": OWN[1], "tab": "team", "text": "play", "id": "own"},
    {"session": OTHER[0], "one": OTHER[0], "other": OWN[0], "text": SECRET, "id": f"{SECRET} 1"},
    {
        "project": "bank",
        "one": OWN[0],
        "other": OTHER[1],
        "text": "play",
        "id": "both",
        "agent": f"{SECRET}-agent",
    },
    {"session": SAME, "one": SAME, "other": OTHER[3], "text": "play"},
]
"""Addresses that visitors may type: of visible sessions, and of others by every parameter."""
QUICK = ("session", "search")
PAGES = [
    (page, query)
    for page in VIEWS
    for query in ADDRESSES
    if EVERYTHING or (page in QUICK and query in (ADDRESSES[0], ADDRESSES[3]))
]


@pytest.fixture(scope="module")
def two_projects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with two projects, which the tests only look at."""
    path = tmp_path_factory.mktemp("two") / "windowpane.db"
    store = SqliteStore(path, capture=True, redact=lambda text: text)
    fill_own(store)
    fill_other(store)
    store.close()
    return path


@pytest.fixture
def viewer(two_projects: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A visitor who may see one of the projects."""
    visits = Visitor(Access(is_admin=False, projects=("shop",)), "Vic", "key")
    monkeypatch.setenv("WINDOWPANE_STORE", str(two_projects))
    monkeypatch.setattr(visitor, "current", lambda: visits)
    monkeypatch.setattr(visitor, "of_request", lambda _cookies: visits)


def received(node: Node) -> Iterator[str]:
    """Yield all that the browser gets of a page, with the rows of its tables and the data of its charts."""
    yield str(node.proto) if node.proto is not None else ""
    for child in node.children.values() if isinstance(node, Block) else ():
        yield from received(child)


@pytest.mark.parametrize(("page", "query"), PAGES)
def test_a_page_holds_nothing_of_another_project(
    page: str, query: dict[str, str], viewer: None, open_page: OpenPage
) -> None:
    app = open_page(page, **query)
    typed = [text for text in query.values() if text in (*OTHER, SECRET, f"{SECRET} 1", f"{SECRET}-agent")]
    body = "".join(chain(received(app.main), received(app.sidebar)))
    for text in sorted(typed, key=len, reverse=True):
        body = body.replace(text, "")

    assert not app.exception
    assert query is not ADDRESSES[0] or page == "replay" or "drum" in body
    assert SECRET not in body
    assert "bank-" not in body


def test_the_plain_id_opens_the_session_of_the_visible_project(
    viewer: None, open_page: OpenPage, page_text: Callable[[AppTest], str]
) -> None:
    opened, unknown = open_page("session", session=SAME), open_page("session", session=OTHER[3])

    assert "title drum" in page_text(opened)
    assert "not in the store" not in page_text(opened)
    assert "not in the store" in page_text(unknown)
    assert "not in the store" in page_text(open_page("session", session="bank-lead"))


def test_the_plain_id_links_to_the_sessions_of_all_visible_projects(
    two_projects: Path, monkeypatch: pytest.MonkeyPatch, open_page: OpenPage, page_text: Callable[[AppTest], str]
) -> None:
    monkeypatch.setenv("WINDOWPANE_STORE", str(two_projects))
    text = page_text(open_page("session", session=SAME))

    assert "Several projects have a session of this name." in text


@pytest.mark.parametrize("form", sorted(downloads.EXPORT_FORMATS))
@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"project": "bank"},
        {"session": "bank-lead"},
        {"session": SAME},
        {"session": OTHER[3]},
        {"text": SECRET},
    ],
)
def test_a_download_holds_nothing_of_another_project(form: str, asked: dict[str, str], viewer: None) -> None:
    address = downloads.address(AuditFilters.from_query(asked), form)
    query = address.partition("?")[2].encode()
    answer = downloads.send(Request({"type": "http", "query_string": query, "headers": []}))
    body = asyncio.run(_body(answer))
    text = str(pyarrow.parquet.read_table(io.BytesIO(body)).to_pylist()) if form == "parquet" else body.decode()

    assert SECRET not in text
    assert ("shop-lead" in text) == (not asked)


def test_a_report_holds_nothing_of_another_project(two_projects: Path) -> None:
    store = open_reader(two_projects)
    reader = ProjectReader(store, ["shop"])
    for session_id in OWN:
        row = reader.session(session_id)
        assert row is not None
        turn = gather_turn(reader, row, 2)
        assert turn is not None
        page = to_html(gather(reader, row, now=time.time())) + turn_to_html(turn)
        assert SECRET not in page
        assert "bank-" not in page
    store.close()


def test_sub_agents_of_other_projects_are_named_to_those_who_see_them(
    two_projects: Path, monkeypatch: pytest.MonkeyPatch, open_page: OpenPage, page_text: Callable[[AppTest], str]
) -> None:
    monkeypatch.setenv("WINDOWPANE_STORE", str(two_projects))

    text = page_text(open_page("session", session="shop-lead", tab="team"))

    assert "3 sessions, including 1 of other projects." in text


async def _body(answer: object) -> bytes:
    return b"".join([part async for part in answer.body_iterator])  # type: ignore[attr-defined]
