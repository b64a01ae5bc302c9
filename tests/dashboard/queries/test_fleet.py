"""The fleet: its table, its totals, and what the store holds for how long."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from windowpane.core.vocabulary import Severity, Zone
from windowpane.store.records import AlertRow, SessionRow
from windowpane.store.sqlite import SqliteStore
from windowpane.text.formats import size
from windowpane_dashboard.queries.filters import FleetFilters
from windowpane_dashboard.queries.fleet import (
    Fleet,
    Retention,
    bytes_on_disk,
    configured_retention,
    firing_now,
    firing_text,
    fleet_frame,
    read_fleet,
    retention_text,
)
from windowpane_dashboard.sections.fleet_table import fleet_styled
from windowpane_dashboard.style.theme import LIGHT


def test_the_size_is_that_of_the_files(small_store: SqliteStore) -> None:
    """The size is that of the database and its log in the file system."""
    path = Path(small_store.path)

    result = bytes_on_disk(path)

    assert result == sum(file.stat().st_size for file in path.parent.glob(path.name + "*"))
    assert result >= small_store.size().bytes


@pytest.mark.parametrize(
    ("retention", "text"),
    [
        (
            Retention(30, 2_000_000_000, frozenset()),
            "after 30 days without an event (default) or beyond 2.0 GB (default)",
        ),
        (
            Retention(1, 5_000_000, frozenset({"days"})),
            "after 1 day without an event (configured) or beyond 5.0 MB (default)",
        ),
        (
            Retention(0.5, 900, frozenset({"days", "bytes"})),
            "after 0.5 days without an event (configured) or beyond 900 B (configured)",
        ),
    ],
)
def test_a_retention_limit_has_its_origin(retention: Retention, text: str) -> None:
    """Days and size are each default or configured."""
    assert retention_text(retention) == text


def test_the_file_and_the_environment_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limits are those that `windowpane serve` enforces with the same configuration."""
    file = tmp_path / "windowpane.yaml"
    file.write_text("store:\n  retention_bytes: 750000000\n")
    monkeypatch.setenv("WINDOWPANE_CONFIG", str(file))
    monkeypatch.setenv("WINDOWPANE_RETENTION_DAYS", "7")

    assert configured_retention() == Retention(7, 750_000_000, frozenset({"days", "bytes"}))


def test_the_fleet_page_shows_size_and_retention(
    small_store: SqliteStore,
    monkeypatch: pytest.MonkeyPatch,
    open_page: Callable[..., Any],
    page_text: Callable[..., str],
) -> None:
    """Size on disk, events, sessions and the limits are below the table."""
    monkeypatch.setenv("WINDOWPANE_RETENTION_DAYS", "7")

    text = page_text(open_page("fleet")).replace("\\", "")

    assert f"Store: {size(bytes_on_disk(Path(small_store.path)))} on disk" in text
    assert "events of 3 sessions, no content" in text
    assert "after 7 days without an event (configured) or beyond 2.0 GB (default)" in text


def test_an_unreadable_configuration_is_reported(
    small_store: SqliteStore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    open_page: Callable[..., Any],
    page_text: Callable[..., str],
) -> None:
    """The page opens, and names the error instead of a default."""
    monkeypatch.setenv("WINDOWPANE_CONFIG", str(tmp_path / "gone.yaml"))

    app = open_page("fleet")

    assert not app.exception
    assert "gone" in page_text(app)
    assert "(default)" not in page_text(app)


def test_only_unresolved_alerts_count() -> None:
    """A resolved critical alert does not make a session critical while a warning fires."""
    plain = AlertRow("s", "a", "x", "warning", 3, 4, None, None, None, 1.0, 1.0, "")
    resolved = replace(plain, severity="critical", resolved_turn=9)

    assert firing_now([plain, resolved]) == {"s": {"warning": 1}}
    assert firing_now([resolved]) == {}
    both = firing_now([plain, plain, replace(resolved, resolved_turn=None)])
    assert Fleet((), more=False, fired=both).firing == {"s": "critical"}


def test_the_worst_alerts_are_counted_apart() -> None:
    """The number of the worst severity comes first, less severe alerts follow."""
    assert firing_text(2, Counter(warning=2)) == "2 warning"
    assert firing_text(3, Counter(critical=1, warning=1, info=1)) == "1 critical +2"
    assert firing_text(2, None) == "2 firing"
    assert firing_text(0, None) == ""


def test_only_live_sessions_have_a_forecast(small_store: SqliteStore) -> None:
    """Unknown values stay empty."""
    listed = read_fleet(small_store, FleetFilters())
    frame = fleet_frame(listed, time.time()).set_index("agent")

    assert frame.loc["reviewer", "next"] not in ("not live", "–")
    assert set(frame.loc["writer", "next"]) == {"not live"}
    assert frame.loc["writer", "now"].isna().sum() == 1


SESSION = SessionRow(
    session_id="s", revision=1, agent="a", model="m", source="live", parent_session_id=None, started_at=0.0,
    last_at=1_000.0, ended=False, incomplete=False, turns=40, exchanges=1, events=10, windows=1,
    limit_tokens=100_000, limit_source="given", used_tokens=50_000, peak_used_tokens=93_000, utilization=0.5,
    peak_utilization=0.93, zone="yellow", worst_zone="red", velocity=100.0, turns_until_red=9.0, cost_dollars=1.0,
    input_tokens=100, output_tokens=1, cache_read_tokens=40, evicted_blocks=0, evicted_tokens=0, compressions=0,
    regrets=0, overflows=0, fidelity=None, firing=0, worst_severity=None, last_event="turn.ended",
)  # fmt: skip


class TestFleet:
    def test_the_cache_ratio_is_a_ratio_of_sums(self) -> None:
        """A large session counts for more than a small one."""
        rows = (SESSION, replace(SESSION, input_tokens=900, cache_read_tokens=860, cost_dollars=None))
        listed = Fleet(rows, more=False, fired={})

        assert listed.cache_ratio == 0.9
        assert listed.cost_dollars == 1.0
        assert Fleet((), more=False, fired={}).cache_ratio is None


def test_estimates_are_marked_in_the_fleet_table(small_store: SqliteStore) -> None:
    """An estimate has a prefix in the table, and still sorts as a number."""
    listed = read_fleet(small_store, FleetFilters())
    rows: list[SessionRow] = [replace(listed.rows[0], count_source="estimate"), *listed.rows[1:]]
    frame = fleet_frame(replace(listed, rows=tuple(rows)), time.time())

    html = fleet_styled(frame, LIGHT).to_html()

    assert html.count("≈") == 2
    assert frame["tokens"].dtype.kind == "i"


@pytest.mark.parametrize(("worst", "zone"), [("critical", "red"), ("warning", "orange"), ("info", None)])
def test_alerts_are_colored_by_their_severity(
    small_store: SqliteStore, worst: Severity, zone: Zone | None
) -> None:
    """Only the cell of the session with the alert has the color, whatever its text."""
    listed = read_fleet(small_store, FleetFilters())
    rows = [replace(row, zone=None, worst_zone=None, firing=0) for row in listed.rows]
    rows[1] = replace(rows[1], firing=3)
    fired = {rows[1].session_id: Counter({worst: 1, "info": 2})}
    frame = fleet_frame(replace(listed, rows=tuple(rows), fired=fired), time.time())
    frame["alerts"] = "other text"

    html = fleet_styled(frame, LIGHT).to_html()

    column = list(frame.columns).index("alerts")
    colored = {
        name: set(re.findall(rf"_row(\d+)_col{column}\b[^{{]*\{{\s*color: {LIGHT.zone_text[name]}", html))
        for name in ("red", "orange")
    }
    assert colored == {name: {"1"} if name == zone else set() for name in ("red", "orange")}
