"""`windowpane doctor` reports a store that takes no events, and events that wait beside it."""

from __future__ import annotations

import json
import socket
import tomllib
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import windowpane
from windowpane.cli import main
from windowpane.cli.doctor import EXTRAS
from windowpane.core.events import Event, EventContext, SessionStarted
from windowpane.store.embedded import SqliteStore
from windowpane.store.keys import AuditKeys
from windowpane.store.writes.spool import Spool


def test_every_extra_is_looked_up() -> None:
    with (Path(__file__).parents[2] / "pyproject.toml").open("rb") as file:
        extras = set(tomllib.load(file)["project"]["optional-dependencies"])

    assert set(EXTRAS) == extras - {"all", "dev"}


def findings(store: Path) -> list[dict[str, Any]]:
    output = CliRunner().invoke(main, ["doctor", "--store", str(store), "--json"]).output
    rows: list[dict[str, Any]] = json.loads(output)
    return rows


def of_store(store: str) -> list[tuple[str, str]]:
    output = CliRunner().invoke(main, ["doctor", "--store", store, "--json"]).output
    return [(one["verdict"], one["detail"]) for one in json.loads(output) if one["subject"] == "store"]


def test_a_server_as_store_is_not_a_problem() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        ((verdict, detail),) = of_store(address)
    ((unreachable, reason),) = of_store(address)

    assert (verdict, detail) == ("ok", f"events are sent to {address}, which can be reached")
    assert unreachable == "note"
    assert "cannot be reached now" in reason


def test_a_server_without_encryption_is_a_problem() -> None:
    ((verdict, detail),) = of_store("http://windowpane.example")

    assert verdict == "problem"
    assert "unencrypted" in detail


def test_waiting_spool_files_are_reported(tmp_path: Path) -> None:
    store = tmp_path / "w.db"
    with closing(SqliteStore(store)):
        context = EventContext("s", "a", "m", 0, 1, "live", "s")
        Spool(store, keys=AuditKeys(), redact=None).write([Event(context, 0, 1.0, SessionStarted())])

    (note,) = [finding for finding in findings(store) if finding["subject"] == "spool"]

    assert note["verdict"] == "note"
    assert f"1 files next to {store}" in note["detail"]


def test_a_process_whose_store_takes_no_events_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "not-a-database"
    broken.write_bytes(b"something else" * 1_000)
    running = windowpane.start(port=0, store=broken, notify=[])
    try:
        assert running.url is not None
        monkeypatch.setenv("WINDOWPANE_PORT", running.url.rpartition(":")[2].partition("/")[0])
        (metrics,) = [finding for finding in findings(tmp_path / "w.db") if finding["subject"] == "metrics"]
    finally:
        windowpane.stop()

    assert metrics["verdict"] == "problem"
    assert "the store takes no events" in metrics["detail"]
