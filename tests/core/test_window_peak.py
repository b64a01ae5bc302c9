"""The peak of a window: which limit it is a ratio of, and that every surface states the same one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from windowpane.core.events import CompactionMeasured, Event, LimitChanged, SessionEnded, Usage
from windowpane.core.limits import WindowLimits
from windowpane.core.tracking import SessionInfo, SessionTracker
from windowpane.core.tracking.peak import Moment, WindowPeak
from windowpane.store.embedded import SqliteStore
from windowpane.store.filters import SessionFilter
from windowpane.store.records import SessionRow, TrendRow, TurnRow

ASSUMED = WindowLimits.of(200_000, "assumed")
MILLION = WindowLimits.of(1_000_000, "catalogue")


class Recorded:
    """A tracked session and what the store shows of it."""

    def __init__(self, limits: WindowLimits | None, **options: Any) -> None:
        self.events: list[Event] = []
        self.tracker = SessionTracker(
            SessionInfo("s", "agent", "claude-opus-4-5", "live", "stream"),
            emit=self.events.extend, digest=lambda text: text, limits=limits, **options,
        )  # fmt: skip
        self.at = 1_000_000.0
        self.tracker.start(self.at)

    def call(self, total: int | None, output: int = 0) -> None:
        """Make a call that the provider counts as *total*; None for a provider that counts nothing."""
        self.at += 1.0
        self.tracker.add("user_message", None, 10, at=self.at)
        if output:
            self.tracker.add("assistant_response", None, output, at=self.at)
        self.tracker.end_turn(None if total is None else Usage(total, output_tokens=output), at=self.at)

    def stored(self, path: Path) -> tuple[SessionRow, list[TurnRow], list[TrendRow]]:
        """End the session and return its rows, the same after one batch as after one for each event."""
        self.tracker.end("done", self.at)
        rows = []
        for name, size in (("whole", len(self.events)), ("single", 1)):
            store = SqliteStore(path / f"{name}.db")
            for start in range(0, len(self.events), size):
                store.append(self.events[start : start + size])
            store.flush()
            (row,) = store.sessions(SessionFilter())
            rows.append((row, list(store.turns("s")), list(store.trends(days=36_500))))
            store.close()
        assert rows[0] == rows[1]
        return rows[0]

    @property
    def ended(self) -> tuple[int, float | None]:
        """The peak that `session.ended` states."""
        report = next(event.data.report for event in self.events if isinstance(event.data, SessionEnded))
        assert report is not None
        return report.peak_used_tokens, report.peak_utilization


def test_a_compaction_that_shows_a_smaller_window_corrects_the_peak(tmp_path: Path) -> None:
    """A window that compacts by itself at 167k of an assumed million was one of 200k all the time."""
    session = Recorded(
        WindowLimits.of(1_000_000, "assumed"), smaller_limit=lambda used: 200_000 if used < 200_000 else None
    )
    session.call(100_000)
    session.call(167_000)
    session.tracker.conclusions._record_own_compaction(167_000, session.at)
    session.call(30_000)
    row, turns, (day,) = session.stored(tmp_path)

    assert (row.peak_used_tokens, row.peak_utilization) == (167_000, 0.835)
    assert session.ended == (167_000, 0.835)
    assert row.worst_zone == "orange"
    assert [turn.utilization for turn in turns] == [0.5, 0.835, 0.15]
    assert [turn.limit_tokens for turn in turns] == [200_000] * 3
    assert day.peak_sum == 0.835


def test_a_total_that_refutes_an_assumed_size_corrects_the_peak(tmp_path: Path) -> None:
    """A window of 250k was never 95% full at 190k."""
    session = Recorded(ASSUMED, next_limit=lambda _used: 1_000_000)
    session.call(190_000)
    session.call(250_000)
    row, turns, (day,) = session.stored(tmp_path)

    assert (row.peak_used_tokens, row.peak_utilization) == (250_000, 0.25)
    assert session.ended == (250_000, 0.25)
    assert row.worst_zone == "green"
    assert [turn.zone for turn in turns] == ["green", "green"]
    assert day.peak_sum == 0.25


def test_a_limit_that_the_provider_states_corrects_an_assumed_one(tmp_path: Path) -> None:
    session = Recorded(MILLION)
    session.call(190_000)
    session.tracker.set_limits(WindowLimits.of(200_000, "provider"), session.at)
    row, _, _ = session.stored(tmp_path)

    assert row.utilization == row.peak_utilization == 0.95
    assert session.ended == (190_000, 0.95)


def test_each_call_keeps_the_limit_of_its_model(tmp_path: Path) -> None:
    session = Recorded(ASSUMED)
    session.call(190_000)
    session.tracker.set_model("gemini-2.5-pro", MILLION, session.at)
    session.call(300_000)
    row, turns, _ = session.stored(tmp_path)

    assert (row.peak_used_tokens, row.peak_utilization) == (190_000, 0.95)
    assert session.ended == (190_000, 0.95)
    assert row.utilization == 0.3
    assert [turn.utilization for turn in turns] == [0.95, 0.3]


@pytest.mark.parametrize("limits", [ASSUMED, None])
@pytest.mark.parametrize("total", [100_000, None])
def test_the_window_is_never_above_its_peak(
    tmp_path: Path, limits: WindowLimits | None, total: int | None
) -> None:
    """The reply of the last call counts, although no call has sent it yet."""
    session = Recorded(limits)
    session.call(50_000 if total else None, output=400)
    session.call(total, output=60_000)
    row, _, _ = session.stored(tmp_path)

    assert row.used_tokens > 60_000
    assert row.peak_used_tokens == row.used_tokens
    assert row.peak_utilization == row.utilization
    assert row.worst_zone == row.zone
    assert session.ended == (row.peak_used_tokens, row.peak_utilization)


def test_a_compaction_that_is_measured_under_a_refuted_limit_counts_under_the_true_one() -> None:
    """Its measurement comes with the first call after it, when the limit may have been corrected already."""
    peak = WindowPeak(source="assumed", now=Moment(150_000, 1_000_000, 1))
    peak.change_limit(LimitChanged(200_000, "observed_compaction", 1_000_000), "")
    peak.count_compaction(CompactionMeasured("compaction", 167_000, 30_000, limit_tokens=1_000_000), 2)

    assert peak.fullest is not None
    assert (peak.fullest.tokens, peak.fullest.utilization) == (167_000, 0.835)
