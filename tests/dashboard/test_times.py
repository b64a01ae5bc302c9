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
    ("zone", "offset", "clock", "words"),
    [
        ("Asia/Kolkata", -330, "16:34:05", "Asia/Kolkata, UTC+05:30"),
        ("Not/AZone", 210, "07:34:05", "UTC−03:30"),
        (None, -60, "12:04:05", "UTC+01:00"),
        ("UTC", 0, "11:04:05", "UTC"),
    ],
)
def test_a_moment_is_told_by_the_browsers_clock(
    monkeypatch: pytest.MonkeyPatch, zone: str | None, offset: int, clock: str, words: str
) -> None:
    """The zone by name, else by its distance; UTC stands beside it."""
    browser(monkeypatch, zone, offset)

    assert times.local(AT) == f"2026-03-02 {clock}"
    assert times.local_and_utc(AT) == f"2026-03-02 {clock} (2026-03-02 11:04:05 UTC)"
    assert times.reader_zone_label() == words
    shown = times.in_reader_zone(pd.Series(pd.to_datetime([AT], unit="s", utc=True)))
    assert f"{shown.iloc[0]:%H:%M:%S}" == clock


def test_without_a_browser_it_is_the_machines_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A browser that tells nothing leaves the zone of this machine."""
    browser(monkeypatch, None, None)

    assert datetime.fromtimestamp(AT, times.reader_zone()).utcoffset() == (
        datetime.fromtimestamp(AT, UTC).astimezone().utcoffset()
    )


def test_a_zone_west_of_greenwich_has_a_minus() -> None:
    """The offset at that moment, with summer time."""
    summer = datetime(2026, 7, 1, tzinfo=UTC)

    assert times.offset_label(ZoneInfo("America/New_York"), summer) == "UTC−04:00"
    assert times.offset_label(timezone(timedelta(hours=-3, minutes=-30)), summer) == "UTC−03:30"


def test_an_unknown_moment_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recordings without times say so."""
    browser(monkeypatch, "UTC", 0)

    assert times.local(None) == times.local_and_utc(None) == "–"
