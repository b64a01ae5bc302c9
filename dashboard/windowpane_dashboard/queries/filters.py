"""Filters to query parameters and back, so that every view has an address that can be shared.

What a hand-written address gets wrong is ignored, never an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Final, Literal, get_args
from urllib.parse import urlencode

from windowpane.core.events import PAYLOADS
from windowpane.core.vocabulary import ZONES, Severity, Zone
from windowpane.store.interface import EventFilter, SessionFilter

SEVERITIES: Final[tuple[Severity, ...]] = get_args(Severity)
MAXIMUM_TEXT: Final = 500
"""Characters of a free-text filter."""
Query = dict[str, str]


@dataclass(frozen=True, slots=True)
class FleetFilters:
    """What the fleet page lists; None means any."""

    agent: str | None = None
    model: str | None = None
    source: str | None = None
    zone: Zone | None = None
    severity: Severity | None = None
    text: str | None = None

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> FleetFilters:
        """The filters an address asks for."""
        return cls(
            agent=_text(query, "agent"),
            model=_text(query, "model"),
            source=_text(query, "source"),
            zone=next((zone for zone in ZONES if zone == query.get("zone")), None),
            severity=next((level for level in SEVERITIES if level == query.get("severity")), None),
            text=_text(query, "text"),
        )

    def to_query(self) -> Query:
        """The query parameters that give these filters again."""
        return {field.name: value for field in fields(self) if (value := getattr(self, field.name))}

    def to_store(self, *, limit: int) -> SessionFilter:
        """What to ask the store for."""
        return SessionFilter(
            agent=self.agent, model=self.model, source=self.source, zone=self.zone,
            severity=self.severity, text=self.text, limit=limit,
        )  # fmt: skip


Scale = Literal["limit", "content"]
"""Whether a picture reaches up to the limit, or only as high as the content."""
Events = Literal["noteworthy"]


@dataclass(frozen=True, slots=True)
class SessionPlace:
    """A place in a session and how it is looked at; without a turn the latest."""

    session: str | None = None
    turn: int | None = None
    compression: int | None = None
    """Which compression is shown, from 1; None for the one of the turn."""
    scale: Scale | None = None
    """How high the picture reaches; None where it suits the content."""
    events: Events | None = None
    """Which events are listed; None for those of the turn."""

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> SessionPlace:
        """The place an address names."""
        return cls(
            session=_text(query, "session"),
            turn=_number(query, "turn"),
            compression=_number(query, "compression"),
            scale=next((scale for scale in get_args(Scale) if scale == query.get("scale")), None),
            events=next((events for events in get_args(Events) if events == query.get("events")), None),
        )

    def to_query(self) -> Query:
        """The query parameters that name this place."""
        known = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: str(value) for name, value in known if value not in (None, "")}

    def address(self) -> str:
        """The place as an address relative to the application."""
        return f"session?{urlencode(self.to_query())}"


AlertState = Literal["firing", "resolved"]
Told = Literal["arrived", "failed", "nobody"]
Along = Literal["time", "turn"]


@dataclass(frozen=True, slots=True)
class AlertFilters:
    """Which firings the alerts page lists, and the one it explains; None means any."""

    session: str | None = None
    alert: str | None = None
    severity: Severity | None = None
    state: AlertState | None = None
    told: Told | None = None
    pick: str | None = None
    """The firing that is explained, as `alert:crossing turn:session`."""
    along: Along | None = None
    """The axis of the lanes; None where it suits the times."""

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> AlertFilters:
        """The filters an address asks for."""
        return cls(
            session=_text(query, "session"),
            alert=_text(query, "alert"),
            severity=next((level for level in SEVERITIES if level == query.get("severity")), None),
            state=next((state for state in get_args(AlertState) if state == query.get("state")), None),
            told=next((told for told in get_args(Told) if told == query.get("told")), None),
            pick=_text(query, "pick"),
            along=next((along for along in get_args(Along) if along == query.get("along")), None),
        )

    def to_query(self) -> Query:
        """The query parameters that give these filters again."""
        return {field.name: value for field in fields(self) if (value := getattr(self, field.name))}

    @property
    def listing(self) -> AlertFilters:
        """Only what narrows the list."""
        return replace(self, pick=None, along=None)


@dataclass(frozen=True, slots=True)
class ComparePlace:
    """Two sessions side by side."""

    one: str | None = None
    other: str | None = None

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> ComparePlace:
        """The sessions an address names."""
        return cls(_text(query, "one"), _text(query, "other"))

    def to_query(self) -> Query:
        """The query parameters that name these sessions."""
        return {field.name: value for field in fields(self) if (value := getattr(self, field.name))}


@dataclass(frozen=True, slots=True)
class ReplayPlace:
    """A stored replay and what of it is shown."""

    id: str | None = None
    session: str | None = None
    """Whose timelines are drawn; None for the first."""
    setup: str | None = None
    """Whose configuration is shown; None for the best."""

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> ReplayPlace:
        """The replay an address names."""
        return cls(_text(query, "id"), _text(query, "session"), _text(query, "setup"))

    def to_query(self) -> Query:
        """The query parameters that name this replay."""
        return {field.name: value for field in fields(self) if (value := getattr(self, field.name))}


@dataclass(frozen=True, slots=True)
class AuditFilters:
    """What the audit page lists; None and empty mean any."""

    session: str | None = None
    types: tuple[str, ...] = ()
    turn_from: int | None = None
    turn_to: int | None = None
    text: str | None = None
    after: int = 0
    """Rows after this `seq`: where the page begins."""

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> AuditFilters:
        """The filters an address asks for."""
        asked = query.get("types", "").split(",")
        return cls(
            session=_text(query, "session"),
            types=tuple(name for name in dict.fromkeys(asked) if name in PAYLOADS),
            turn_from=_number(query, "turn_from"),
            turn_to=_number(query, "turn_to"),
            text=_text(query, "text"),
            after=_number(query, "after") or 0,
        )

    def to_query(self) -> Query:
        """The query parameters that give these filters again."""
        plain = {
            "session": self.session,
            "types": ",".join(self.types),
            "turn_from": self.turn_from,
            "turn_to": self.turn_to,
            "text": self.text,
            "after": self.after or None,
        }
        return {name: str(value) for name, value in plain.items() if value is not None and value != ""}

    def to_store(self, *, limit: int) -> EventFilter:
        """What to ask the store for."""
        return EventFilter(
            session_id=self.session, types=self.types, turn_from=self.turn_from, turn_to=self.turn_to,
            text=self.text, after_seq=self.after, limit=limit,
        )  # fmt: skip


def _text(query: Mapping[str, str], name: str) -> str | None:
    return query.get(name, "").strip()[:MAXIMUM_TEXT] or None


def _number(query: Mapping[str, str], name: str) -> int | None:
    value = query.get(name, "")
    return int(value) if value.isascii() and value.isdigit() and len(value) < 16 else None
