"""Filters and positions of the pages as query parameters, so that every view has an address that can be shared.

Parameters that a hand-written address gets wrong are ignored, never an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from types import NoneType
from typing import Any, Final, Literal, NamedTuple, Self, get_args, get_origin, get_type_hints
from urllib.parse import urlencode

from windowpane.core.events import PAYLOADS
from windowpane.core.vocabulary import Severity, Zone
from windowpane.store.filters import Attention, EventFilter, FleetOrder, SessionFilter

MAXIMUM_TEXT: Final = 500
"""Characters of a free-text filter."""
Query = dict[str, str]

Events = Literal["noteworthy"]
EventOrder = Literal["newest"]
AlertState = Literal["firing", "resolved", "unresolved"]
"""An alert fires while it is not resolved and its session is live; unresolved after that."""
DeliveryState = Literal["delivered", "failed", "none"]
TrendLines = Literal["agent", "model", "release"]
Range = Literal["7", "30", "90", "365", "3650"]
"""Days of a trend, up to the last one with an event; the first is the default."""

MAXIMUM_DAILY: Final = 31
"""Days of a range that is drawn by day."""

_DECIMAL: Final = re.compile(r"[0-9]{1,12}(\.[0-9]{1,9})?")

FIRST_DAY: Final = date(1970, 1, 1)
LAST_DAY: Final = date(2999, 12, 31)


class DateRange(NamedTuple):
    """Days from the first to the last, both included: `2026-03-02..2026-03-05`."""

    first: date
    last: date

    @classmethod
    def parse(cls, text: str) -> DateRange | None:
        """Read a range; None where it is not one."""
        try:
            first, last = map(date.fromisoformat, text.split(".."))
        except ValueError:
            return None
        chosen = cls(min(first, last), max(first, last))
        return chosen if chosen.first >= FIRST_DAY and chosen.last <= LAST_DAY else None

    def __str__(self) -> str:
        return f"{self.first.isoformat()}..{self.last.isoformat()}"

    def bounds(self, zone: tzinfo) -> tuple[float, float]:
        """Return the first moment of the range and the first after it, in seconds since the epoch."""
        start, end = (datetime.combine(day, time(), zone) for day in self)
        return start.timestamp(), (end + timedelta(days=1)).timestamp()


@dataclass(frozen=True, slots=True)
class Parameters:
    """The query parameters of one page: one field per parameter, parsed by its type."""

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> Self:
        """Read the parameters of an address; a missing or invalid one has its default."""
        parsed = {name: _parsed(kind, query.get(name, "")) for name, kind in _kinds(cls).items()}
        return cls(**{name: value for name, value in parsed.items() if value is not None})

    def to_query(self) -> Query:
        """Return the query parameters from which `from_query` reads the same values; defaults are omitted."""
        values = ((field, getattr(self, field.name)) for field in fields(self))
        return {
            field.name: ",".join(value) if type(value) is tuple else str(value)
            for field, value in values
            if value not in ("", field.default)
        }


def _kinds(parameters: type[Parameters]) -> dict[str, Any]:
    """Return the type of each field, without the `None` of an optional one."""
    hints = get_type_hints(parameters)
    return {name: get_args(hint)[0] if NoneType in get_args(hint) else hint for name, hint in hints.items()}


def _parsed(kind: Any, text: str) -> Any:
    if kind is int:
        return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None
    if kind is float:
        return float(text) if _DECIMAL.fullmatch(text) else None
    if kind is DateRange:
        return DateRange.parse(text)
    if get_origin(kind) is Literal:
        return text if text in get_args(kind) else None
    if get_origin(kind) is tuple:
        return tuple(name for name in dict.fromkeys(text.split(",")) if name in PAYLOADS)
    return text.strip()[:MAXIMUM_TEXT] or None


@dataclass(frozen=True, slots=True)
class FleetFilters(Parameters):
    """The filters of the fleet page; None means any."""

    agent: str | None = None
    model: str | None = None
    source: str | None = None
    zone: Zone | None = None
    severity: Severity | None = None
    live: Attention | None = None
    """Only live sessions that need attention for this reason, as the headline counts them."""
    reached: Literal["red"] | None = None
    """Only sessions whose window was red or overflowed at some turn."""
    text: str | None = None
    dates: DateRange | None = None
    """Only sessions that were active on one of these days."""
    order: FleetOrder = "pressure"
    project: str | None = None

    def to_store(self, *, limit: int, since: float | None = None, zone: tzinfo = UTC) -> SessionFilter:
        """Return the query to the store for at most *limit* sessions; days are those of *zone*.

        Sessions are live that had an event since *since*; by pressure they come first.
        """
        at_from, at_to = self.dates.bounds(zone) if self.dates else (None, None)
        return SessionFilter(
            agent=self.agent, model=self.model, source=self.source, zone=self.zone,
            severity=self.severity, text=self.text, at_from=at_from, at_to=at_to, order=self.order,
            live_first_since=since if self.order == "pressure" else None, limit=limit, attention=self.live,
            live_since=since if self.live else None, reached_red=self.reached is not None,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class SessionAddress(Parameters):
    """A position in a session and how it is shown; without a turn, the latest."""

    session: str | None = None
    turn: int | None = None
    compression: int | None = None
    """The compression that is shown, from 1; None for that of the turn."""
    events: Events | None = None
    """The events that are listed; None for those of the turn."""
    alert: str | None = None
    """The alert that is explained, as `alert:crossing turn`."""
    at: float | None = None
    """Time at which that alert fired or was resolved, by which a message names its turn."""
    tab: str | None = None
    """The tab below the chart; None for the one that the other parameters need."""
    block: str | None = None
    """The block that is read next to the tabs."""
    text: str | None = None
    """The search for text in the session."""

    @property
    def open_tab(self) -> str | None:
        """The tab that shows what this address is about; None for the first."""
        if self.tab is not None:
            return self.tab
        if self.alert is not None:
            return "alerts"
        if self.compression is not None:
            return "compressions"
        if self.text is not None:
            return "find"
        return None if self.events is None else "events"

    @property
    def evidence(self) -> str | None:
        """The key of the part of the page that the address is about."""
        if self.block is not None:
            return "block_panel"
        return "alert_line" if self.alert is not None else None if self.compression is None else "compression"

    def url(self) -> str:
        """Return the address relative to the application."""
        return f"session?{urlencode(self.to_query())}"


@dataclass(frozen=True, slots=True)
class AlertFilters(Parameters):
    """The filters of the alerts page and the firing that it explains; None means any."""

    session: str | None = None
    alert: str | None = None
    severity: Severity | None = None
    state: AlertState | None = None
    delivery: DeliveryState | None = None
    text: str | None = None
    """Only alerts with this in their title or report."""
    dates: DateRange | None = None
    """Only alerts that fired on one of these days."""
    pick: str | None = None
    """The firing that is explained, as `alert:crossing turn:session`."""
    project: str | None = None

    @property
    def listing(self) -> AlertFilters:
        """Only the filters that narrow the list."""
        return replace(self, pick=None)


@dataclass(frozen=True, slots=True)
class CompareAddress(Parameters):
    """The two sessions of the compare page."""

    one: str | None = None
    other: str | None = None


@dataclass(frozen=True, slots=True)
class ReplayAddress(Parameters):
    """A stored replay and which parts of it are shown."""

    id: str | None = None
    session: str | None = None
    """The session whose timelines are drawn; None for the first."""
    setup: str | None = None
    """The setup whose configuration is shown; None for the best."""
    simulate: str | None = None
    """The session that the form is filled in with; None for an empty form."""
    policies: str | None = None
    """Policies of the form, comma-separated."""
    window: str | None = None
    """Window of the form, in tokens."""

    @property
    def simulated(self) -> str | None:
        """The session of the form; that of an address without a replay is to be simulated."""
        return self.simulate or (self.session if self.id is None else None)


@dataclass(frozen=True, slots=True)
class SearchAddress(Parameters):
    """The search page."""

    text: str | None = None
    project: str | None = None


@dataclass(frozen=True, slots=True)
class TrendAddress(Parameters):
    """The lines and filters of the trends page; None means the first choice, or any."""

    by: TrendLines | None = None
    days: Range | None = None
    top: str | None = None
    """The kind of names that costs are summed by, or the prefix of the tools of one MCP server."""
    repository: str | None = None
    one: str | None = None
    other: str | None = None
    """The two lines that are compared; None for the two newest with enough sessions."""
    project: str | None = None

    @property
    def range_days(self) -> int:
        """Days of the range."""
        return int(self.days or get_args(Range)[0])

    @property
    def is_weekly(self) -> bool:
        """A longer range is drawn by week."""
        return self.range_days > MAXIMUM_DAILY


@dataclass(frozen=True, slots=True)
class AuditFilters(Parameters):
    """The filters of the audit page; None and empty mean any."""

    session: str | None = None
    types: tuple[str, ...] = ()
    turn_from: int | None = None
    turn_to: int | None = None
    text: str | None = None
    after: int = 0
    """Rows after this `seq`, in the order of the page: where it starts; 0 for its start."""
    order: EventOrder | None = None
    """None for the order of the store."""
    dates: DateRange | None = None
    """Only events of these days."""
    project: str | None = None

    @property
    def newest_first(self) -> bool:
        """True where the latest events come first."""
        return self.order == "newest"

    def to_store(self, *, limit: int, zone: tzinfo = UTC) -> EventFilter:
        """Return the query to the store for at most *limit* events; days are those of *zone*."""
        at_from, at_to = self.dates.bounds(zone) if self.dates else (None, None)
        start = {"before_seq": self.after or None} if self.newest_first else {"after_seq": self.after}
        return EventFilter(
            session_id=self.session, types=self.types, turn_from=self.turn_from, turn_to=self.turn_to,
            text=self.text, limit=limit, newest_first=self.newest_first, at_from=at_from, at_to=at_to, **start,
        )  # fmt: skip
