"""Downloads hold exactly what the filters match, in every form, from one batch of memory."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
import tracemalloc
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from tests.sampling import sampled

from windowpane.config.dashboard import Access
from windowpane.config.paths import LOGIN_VARIABLE
from windowpane.core.events import Event
from windowpane.store.embedded import SqliteStore
from windowpane.store.filters import EventFilter, SessionFilter
from windowpane.store.reads import export
from windowpane.store.reads.export import ExportRow
from windowpane_dashboard.page import downloads, visitor
from windowpane_dashboard.page.downloads import EXPORT_FORMATS, csv_lines
from windowpane_dashboard.page.visitor import Visitor
from windowpane_dashboard.queries.filters import AuditFilters, DateRange

FILTERS = (
    AuditFilters(),
    AuditFilters(session="refactor-api"),
    AuditFilters(types=("alert.fired", "blocks.evicted")),
    AuditFilters(session="refactor-api", turn_from=12, turn_to=18),
    AuditFilters(text="compaction"),
    AuditFilters(session="short", types=("blocks.evicted",)),
    AuditFilters(dates=DateRange(date(2001, 1, 1), date(2001, 1, 2))),
    AuditFilters(dates=DateRange(date(2001, 1, 1), date(2900, 1, 1))),
)


def fetched(filters: AuditFilters, form: str) -> Any:
    client = TestClient(Starlette(routes=list(downloads.ROUTES)))
    response = client.get("/" + downloads.address(filters, form))
    assert response.status_code == 200, response.text
    return response


def numbers(body: bytes, form: str) -> list[int]:
    if form == "jsonl":
        return [json.loads(line)["seq"] for line in body.splitlines()]
    if form == "csv":
        return [int(row["seq"]) for row in csv.DictReader(io.StringIO(body.decode()))]
    parquet = pytest.importorskip("pyarrow.parquet")
    return list(parquet.read_table(io.BytesIO(body)).column("seq").to_pylist())


@pytest.mark.parametrize("form", EXPORT_FORMATS)
@pytest.mark.parametrize("filters", FILTERS, ids=lambda filters: urlencode(filters.to_query()) or "all")
def test_a_download_holds_exactly_what_matches(
    small_store: SqliteStore, monkeypatch: pytest.MonkeyPatch, filters: AuditFilters, form: str
) -> None:
    monkeypatch.setattr(export, "BATCH", 7)
    wanted = [one.seq for one in small_store.events(filters.to_store(limit=100_000))]
    later = AuditFilters(**{**{name: getattr(filters, name) for name in filters.__slots__}, "after": 50})

    response = fetched(later, form)

    assert numbers(response.content, form) == wanted
    assert response.headers["content-disposition"].endswith(f'.{form}"')


def test_json_lines_and_parquet_equal_the_command_line_export(small_store: SqliteStore, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    for form in ("jsonl", "parquet"):
        small_store.export(tmp_path / form, form=form)

    assert fetched(AuditFilters(), "jsonl").content == (tmp_path / "jsonl").read_bytes()
    page = parquet.read_table(io.BytesIO(fetched(AuditFilters(), "parquet").content))
    assert page.equals(parquet.read_table(tmp_path / "parquet"))


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n"])
def test_no_cell_is_a_formula(empty_store: SqliteStore, builders: Any, start: str) -> None:
    name = f'{start}cmd|" /C calc"!A0, "quoted"'
    empty_store.append(builders.plain(name, start=1_700_000_000.0, turns=1, limit_tokens=None, end=True))

    rows = list(csv.DictReader(io.StringIO(fetched(AuditFilters(), "csv").text, newline="")))

    assert rows
    assert {row["session"] for row in rows} == {f"'{name}"}
    assert not [cell for row in rows for cell in row.values() if cell.startswith(start)]


@pytest.mark.parametrize("form", EXPORT_FORMATS)
def test_a_damaged_event_does_not_cut_a_download_short(small_store: SqliteStore, form: str) -> None:
    wanted = [one.seq for one in small_store.events(EventFilter(limit=100_000))]
    with closing(sqlite3.connect(small_store.path)) as connection:
        connection.execute("UPDATE events SET body = X'FF00' WHERE seq = ?", (wanted[3],))
        connection.commit()

    content = fetched(AuditFilters(), form).content

    assert numbers(content, form) == wanted
    assert form != "csv" or b"cannot be read" in content


def test_times_and_hashes_are_complete(small_store: SqliteStore) -> None:
    stored = small_store.events(EventFilter(limit=1))[0]

    row = next(csv.DictReader(io.StringIO(fetched(AuditFilters(), "csv").text)))

    assert row["hash"] == stored.hash
    assert row["event"] == stored.event.type == "session.started"
    assert row["at"].endswith("Z")


@pytest.mark.parametrize(
    "change",
    [{"session": "other"}, {"signature": ""}, {"signature": "0" * 64}, {"form": "xml"}, {"turn_to": "9"}],
)
def test_only_signed_addresses_are_served(small_store: SqliteStore, change: dict[str, str]) -> None:
    client = TestClient(Starlette(routes=list(downloads.ROUTES)))
    _, _, query = downloads.address(AuditFilters(session="short"), "jsonl").partition("?")

    response = client.get(f"/{downloads.PATH}?{urlencode({**dict(parse_qsl(query)), **change})}")

    assert response.status_code == 403
    assert "short" not in response.text


def test_a_missing_store_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDOWPANE_STORE", str(tmp_path / "gone.db"))
    client = TestClient(Starlette(routes=list(downloads.ROUTES)))

    response = client.get("/" + downloads.address(AuditFilters(), "csv"))

    assert response.status_code == 503
    assert "gone.db" in response.text


@pytest.mark.parametrize("form", sampled(list(EXPORT_FORMATS), 1))
def test_memory_does_not_grow_with_the_download(form: str, builders: Any) -> None:
    events: list[Event] = builders.plain("s", start=1.0, turns=60, limit_tokens=None, end=True)

    def batches(number: int) -> Iterator[list[ExportRow]]:
        from windowpane.core.codec import encode

        for _ in range(number):
            yield [
                ExportRow(n, "s", 1, one.context.turn, one.type, one.at, b"h" * 32, encode(one))
                for n, one in enumerate(events)
            ]

    def peak(number: int) -> int:
        tracemalloc.start()
        try:
            assert sum(len(chunk) for chunk in EXPORT_FORMATS[form].write(batches(number)))
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(1)

    assert peak(60) < 2 * peak(2) + 200_000


def test_an_unknown_time_is_an_empty_cell(builders: Any) -> None:
    from windowpane.core.codec import encode

    event = builders.plain("s", start=1.0, turns=1, limit_tokens=None, end=True)[0]
    row = ExportRow(1, "s", 1, 0, event.type, None, b"h", encode(event))

    text = b"".join(csv_lines(iter([[row]]))).decode()

    assert text.splitlines()[1].startswith("1,,s,1,0,session.started,")


def test_with_a_login_an_address_belongs_to_its_visitor(
    small_store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, client = small_store, TestClient(Starlette(routes=list(downloads.ROUTES)))
    of_request = visitor.of_request
    viewer = Visitor(Access(is_admin=False, projects=("shop",)), "Vic", "key of Vic")
    store.assign_project(next(row.session_id for row in store.sessions()), "shop")
    (mine,) = store.sessions(SessionFilter(project="shop"))
    monkeypatch.setattr(visitor, "current", lambda: viewer)
    everything, another = (
        "/" + downloads.address(AuditFilters(project=name), "jsonl") for name in (None, "bank")
    )

    monkeypatch.setattr(visitor, "of_request", lambda _cookies: viewer)
    lines = [json.loads(line) for line in client.get(everything).text.splitlines()]
    assert {line["event"]["session_id"] for line in lines} == {mine.session_id}
    assert len(lines) == mine.events
    assert client.get(another).text == ""
    monkeypatch.setattr(visitor, "of_request", lambda _cookies: replace(viewer, key="key of another"))
    assert client.get(everything).status_code == 403
    monkeypatch.setattr(visitor, "of_request", of_request)
    monkeypatch.setenv(LOGIN_VARIABLE, "1")
    assert client.get(everything).status_code == 401
