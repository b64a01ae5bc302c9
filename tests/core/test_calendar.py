"""Times outside the calendar: unknown as a date, never an error."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.core.times import EARLIEST, LATEST, moment, within_calendar
from windowpane.text import formats

YEAR_33658 = 1e12


@given(st.floats())
def test_no_time_is_an_error(at: float) -> None:
    date = moment(at)

    assert (date is None) == (math.isnan(at) or not EARLIEST <= at <= LATEST)
    for hours in (-14, 14):
        zone = timezone(timedelta(hours=hours))
        within_calendar(at).astimezone(zone)
        formats.local(at, zone=zone)


@pytest.mark.parametrize("at", [YEAR_33658, -1e18, math.inf, math.nan])
def test_a_time_outside_the_calendar_is_unknown(at: float) -> None:
    assert moment(at) is None
    assert formats.utc(at) == formats.local(at) == formats.UNKNOWN


def test_an_ordinary_time_is_exact() -> None:
    assert moment(0.25) == within_calendar(0.25) == datetime(1970, 1, 1, microsecond=250_000, tzinfo=UTC)
    assert moment(None) is None
