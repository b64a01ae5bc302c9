"""Filters of what is read from a store, which sorts and pages the rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Final, Literal

from windowpane.core.vocabulary import Severity, Zone
from windowpane.exceptions import EventFormatError

OnUnreadable = Callable[[int, EventFormatError], object]
"""Receives the `seq` of an event that cannot be decoded, and the error."""

FleetOrder = Literal["pressure", "recent", "cost", "regret"]
"""Order of a list of sessions; see `store.reads.fleet`."""
Attention = Literal["critical", "warning", "red", "red soon"]
"""Reason for which a live session needs attention: its worst firing alert, or its zone."""


@dataclass(frozen=True, slots=True)
class SessionFilter:
    """Filter and order of a list of sessions; every field narrows, None matches all."""

    agent: str | None = None
    model: str | None = None
    source: str | None = None
    zone: Zone | None = None
    reached_red: bool = False
    """Only sessions whose window was red or overflowed at some turn."""
    severity: Severity | None = None
    live_since: float | None = None
    """Only sessions with an event at or after this time and no end."""
    attention: Attention | None = None
    """Only sessions that need attention for this reason; for live ones, so with `live_since`."""
    live_first_since: float | None = None
    """Sessions with an event at or after this time and no end come before the others, whatever the order."""
    at_from: float | None = None
    """Only sessions with an event at or after this time, and one before the next."""
    at_to: float | None = None
    text: str | None = None
    """Substring of the session id, agent, title, folder, repository, branch or label."""
    folder: str | None = None
    """Substring of the working directory; likewise the three below. Case is ignored."""
    repository: str | None = None
    branch: str | None = None
    label: str | None = None
    parent_session_id: str | None = None
    """Only the sub-agents of this session."""
    same_as: str = ""
    """Only the other records of this session; empty for the sessions that are not a record of another."""
    project: str | None = None
    """Only sessions of this project; empty for those without one."""
    projects: tuple[str, ...] | None = None
    """Only sessions of one of these."""
    order: FleetOrder = "pressure"
    limit: int = 100
    offset: int = 0


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Filter and order of events; every field narrows, None matches all."""

    session_id: str | None = None
    types: tuple[str, ...] = ()
    turn_from: int | None = None
    turn_to: int | None = None
    after_seq: int = 0
    text: str | None = None
    """Full-text search over names and payloads (never over content)."""
    limit: int = 500
    newest_first: bool = False
    before_seq: int | None = None
    at_from: float | None = None
    """First moment of the events, and the first after them, in seconds since the epoch."""
    at_to: float | None = None
    projects: tuple[str, ...] | None = None
    """Only events of sessions of one of these projects."""

    @property
    def times(self) -> tuple[float, float] | None:
        """The first moment and the first one after the events; None for all, with and without a time."""
        if self.at_from is None and self.at_to is None:
            return None
        return (-inf if self.at_from is None else self.at_from, inf if self.at_to is None else self.at_to)


@dataclass(frozen=True, slots=True)
class AlertFilter:
    """Filter of the firings of alerts, newest first; every field narrows, None matches all."""

    session_id: str | None = None
    alert: str | None = None
    severity: Severity | None = None
    firing: bool | None = None
    """Only the unresolved firings, or only the resolved ones."""
    live_since: float | None = None
    """Only firings of sessions with an event at or after this time and no end."""
    silent_since: float | None = None
    """Only firings of all other sessions."""
    at_from: float | None = None
    """First moment of the firings, and the first after them, in seconds since the epoch."""
    at_to: float | None = None
    projects: tuple[str, ...] | None = None
    """Only firings in sessions of one of these projects."""
    limit: int = 500


ALL_ALERTS: Final = AlertFilter()
