"""Moments in the reader's own time zone, which is the browser's and not the server's, with UTC next to them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pandas as pd
import streamlit as st

from windowpane.text import formats

FORMAT: Final = "YYYY-MM-DD HH:mm:ss"


def reader_zone() -> tzinfo:
    """Return the browser's time zone; this machine's where the browser did not report one."""
    minutes = st.context.timezone_offset
    offset = datetime.now(UTC).astimezone().tzinfo if minutes is None else timezone(timedelta(minutes=-minutes))
    return _zone_named(st.context.timezone) or offset or UTC


def _zone_named(name: str | None) -> ZoneInfo | None:
    try:
        return ZoneInfo(name) if name else None
    except (ZoneInfoNotFoundError, ValueError):
        return None  # a name that this machine does not know; the present offset still holds


def local(at: float | None) -> str:
    """Return a moment in the reader's zone: `2026-03-02 12:04:05`."""
    return formats.local(at, zone=reader_zone())


def day(at: float | None) -> str:
    """Return the day of a moment in the reader's zone: `2026-03-02`."""
    return local(at).partition(" ")[0]


def utc_help(at: float | None) -> str | None:
    """Return a moment in UTC for a hover help; None where the reader's zone is UTC."""
    utc = formats.utc(at)
    return None if at is None or utc.startswith(local(at)) else utc


def local_and_utc(at: float | None) -> str:
    """Return both: `2026-03-02 12:04:05 (2026-03-02 11:04:05 UTC)`; one where they are the same."""
    utc = utc_help(at)
    return f"{local(at)} ({utc})" if utc else formats.utc(at)


def offset_label(zone: tzinfo, at: datetime) -> str:
    """Return a zone as its offset from UTC: `UTC+05:30`; `UTC` without one."""
    difference = at.astimezone(zone).utcoffset() or timedelta()
    minutes = round(difference.total_seconds() / 60)
    if not minutes:
        return "UTC"
    return f"UTC{'+' if minutes > 0 else '−'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"


def reader_zone_label() -> str:
    """Return the reader's zone: `America/New_York, UTC−05:00`."""
    zone = reader_zone()
    offset = offset_label(zone, datetime.now(UTC))
    return f"{zone.key}, {offset}" if isinstance(zone, ZoneInfo) and zone.key != "UTC" else offset


def in_reader_zone(at: pd.Series) -> pd.Series:
    """Return moments in UTC as moments in the reader's zone."""
    local_times: pd.Series = at.dt.tz_convert(reader_zone())
    return local_times


def time_column(label: str, *, width: int, form: str = FORMAT) -> Any:
    """Return a table's column of moments from `in_reader_zone`; its help names the offset from UTC."""
    return st.column_config.DatetimeColumn(
        label, format=form, width=width, help=f"Your time: {reader_zone_label()}."
    )
