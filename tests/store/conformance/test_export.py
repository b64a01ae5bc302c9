"""Exports that can be checked and analyzed elsewhere."""

from __future__ import annotations

import base64
import json
from hashlib import sha256

import pytest
from tests.store.conformance.direct_access import edit

from windowpane.core.codec import encode
from windowpane.exceptions import StoreError
from windowpane.store.writes.chain import genesis


def test_json_lines_hold_the_exact_bytes_and_their_chain(store, make_session, tmp_path):
    events = make_session("s1", turns=3)
    store.append(events)
    store.append(make_session("s2", turns=1))

    assert store.export(tmp_path / "out.jsonl", session_id="s1") == len(events)

    previous = genesis("s1", 1)
    for line, event in zip((tmp_path / "out.jsonl").read_bytes().splitlines(), events, strict=True):
        body = line[line.index(b'"event":') + 8 : -1]
        previous = sha256(previous + body).digest()
        assert body == encode(event)
        assert json.loads(line)["hash"] == previous.hex()


def test_parquet_holds_every_event_and_revision(store, make_session, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    events = make_session("s1", turns=3)
    store.import_session(lambda: events)
    store.import_session(lambda: [event._replace(at=2.0) for event in events])

    assert store.export(tmp_path / "out.parquet", form="parquet") == 2 * len(events)

    table = parquet.read_table(tmp_path / "out.parquet").to_pylist()
    assert [row["seq"] for row in table] == list(range(1, 2 * len(events) + 1))
    assert {row["revision"] for row in table} == {1, 2}
    assert table[0]["body"].encode() == encode(events[0])
    assert list(tmp_path.glob("*.part")) == []


@pytest.mark.parametrize("body", [b"\xff\x00", b'{"schema": 1,', "text"], ids=["bytes", "cut", "text"])
def test_damaged_events_are_exported_with_their_bytes(stores, store, make_session, tmp_path, body):
    store.append(make_session("s1", turns=2))
    if isinstance(body, str) and not stores.is_sqlite:
        pytest.skip("the database refuses a value of another type")
    edit(store, "UPDATE events SET body = ? WHERE seq = 3", body)
    total = store.size().events

    assert store.export(tmp_path / "out.jsonl") == total

    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_bytes().splitlines()]
    assert [line["seq"] for line in lines if line["event"] is None] == [3]
    assert base64.b64decode(lines[2]["damaged"]) == (body.encode() if isinstance(body, str) else body)
    parquet = pytest.importorskip("pyarrow.parquet")
    assert store.export(tmp_path / "out.parquet", form="parquet") == total
    assert parquet.read_table(tmp_path / "out.parquet").num_rows == total


def test_a_failed_export_creates_no_file(store, make_session, tmp_path):
    store.append(make_session(turns=1))

    with pytest.raises(StoreError, match="cannot be written"):
        store.export(tmp_path / "no folder" / "out.jsonl")
    assert list(tmp_path.glob("out*")) == []
