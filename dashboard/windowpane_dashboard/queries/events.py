"""Events as rows of text: sequence number, time, turn and a description."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

from windowpane.core.times import EARLIEST, LATEST
from windowpane.store.records import DamagedEvent, StoredEvent
from windowpane.text.events import describe_damage, describe_event


class EventLine(NamedTuple):
    """The description of one event, intact or damaged."""

    at: float | None
    session_id: str
    turn: int
    type: str
    what: str


def event_line(one: StoredEvent | DamagedEvent) -> EventLine:
    """Return the description of one event."""
    if isinstance(one, DamagedEvent):
        return EventLine(one.at, one.session_id, one.turn, one.type, describe_damage(one.problem))
    context = one.event.context
    return EventLine(one.event.at, context.session_id, context.turn, one.event.type, describe_event(one.event))


def events_frame(record: Sequence[StoredEvent | DamagedEvent]) -> pd.DataFrame:
    """Return one row per event; `at` in UTC, NaT where a recording has no times."""
    lines = [event_line(one) for one in record]
    data = {
        "seq": [one.seq for one in record],
        "at": utc_times([line.at for line in lines]),
        "session": [line.session_id for line in lines],
        "turn": [line.turn for line in lines],
        "event": [line.type for line in lines],
        "what": [line.what for line in lines],
        "hash": [one.hash[:12] for one in record],
    }
    return pd.DataFrame(data)


def utc_times(at: Sequence[float | None]) -> pd.Series:
    """Return Unix times as moments in UTC; NaT where unknown or outside the calendar."""
    seconds = pd.Series([float("nan") if value is None else value for value in at], dtype="float64")
    return moments(seconds)


def moments(seconds: pd.Series) -> pd.Series:
    """Return a column of Unix times as moments in UTC; NaT where unknown or outside the calendar."""
    return pd.to_datetime(seconds.where(seconds.between(EARLIEST, LATEST)), unit="s", utc=True)
