"""Times are the reader's: the browser's zone, whatever the server's is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import pandas as pd
import pytest

from windowpane_dashboard.page import times

AT = 1_772_449_445.0  # 2026-03-02 11:04:05 UTC


def browser(monkeypatch: pytest.MonkeyPatch, zone: str | None, offset_minutes: int | None) -> None:
    context = SimpleNamespace(timezone=zone, timezone_offset=offset_minutes)
    monkeypatch.setattr(times, "st", SimpleNamespace(context=context))


@pytest.mark.parametrize(
    ("zone", "offset", "clock", "label"),
    [
        ("Asia/Kolkata", -330, "16:34:05", "Asia/Kolkata, UTC+05:30"),
        ("Not/AZone", 210, "07:34:05", "UTC−03:30"),
        (None, -60, "12:04:05", "UTC+01:00"),
        ("UTC", 0, "11:04:05", "UTC"),
    ],
)
def test_times_are_local_to_the_browser(
    monkeypatch: pytest.MonkeyPatch, zone: str | None, offset: int, clock: str, label: str
) -> None:
    browser(monkeypatch, zone, offset)

    assert times.local(AT) == f"2026-03-02 {clock}"
    both = "2026-03-02 11:04:05 UTC" if zone == "UTC" else f"2026-03-02 {clock} (2026-03-02 11:04:05 UTC)"
    assert times.local_and_utc(AT) == both
    assert times.reader_zone_label() == label
    visible = times.in_reader_zone(pd.Series(pd.to_datetime([AT], unit="s", utc=True)))
    assert f"{visible.iloc[0]:%H:%M:%S}" == clock


def test_without_a_browser_times_are_local_to_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    browser(monkeypatch, None, None)

    assert datetime.fromtimestamp(AT, times.reader_zone()).utcoffset() == (
        datetime.fromtimestamp(AT, UTC).astimezone().utcoffset()
    )


def test_a_western_offset_is_negative() -> None:
    summer = datetime(2026, 7, 1, tzinfo=UTC)

    assert times.offset_label(ZoneInfo("America/New_York"), summer) == "UTC−04:00"
    assert times.offset_label(timezone(timedelta(hours=-3, minutes=-30)), summer) == "UTC−03:30"


def test_an_unknown_time_stays_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    browser(monkeypatch, "UTC", 0)

    assert times.local(None) == times.local_and_utc(None) == "–"
