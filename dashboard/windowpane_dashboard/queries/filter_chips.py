"""The filters of a page as short texts, which one search field offers and shows side by side."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import date, timedelta
from typing import Any, Final, NamedTuple, TypeVar, get_args

from windowpane.alerts.rules import RULES_BY_NAME, alert_title
from windowpane.core.events import PAYLOADS
from windowpane.core.vocabulary import SEVERITIES, ZONES
from windowpane.store.filters import Attention, FleetOrder
from windowpane.store.records import SessionRow
from windowpane.text.zones import zone_label
from windowpane_dashboard.queries.filters import (
    AlertFilters,
    AlertState,
    AuditFilters,
    DateRange,
    DeliveryState,
    FleetFilters,
    Parameters,
)
from windowpane_dashboard.queries.titles import session_title

ORDERS: Final[dict[str, str]] = {
    "recent": "newest first",
    "newest": "newest first",
    "cost": "highest cost first",
    "regret": "most needed again first",
}
LAST_DAYS: Final = (1, 7, 30)
_NAMES: Final = {
    "severity": "alert", "dates": "days", "delivery": "message", "types": "event", "turn_from": "from turn",
    "turn_to": "to turn",
}  # fmt: skip
_NOT_CHIPS: Final = ("project", "pick", "after")
_TURNS: Final = re.compile(r"turns? (\d{1,9})(?:\.\.(\d{1,9}))?")
Filters = TypeVar("Filters", FleetFilters, AlertFilters, AuditFilters)


class Filter(NamedTuple):
    """One field of a page's filters with a value."""

    field: str
    value: Any

    @property
    def text(self) -> str:
        """The filter as it is shown: `agent: codex`, `zone: ● red`, `newest first`; typed text as it is."""
        if self.field == "text":
            return str(self.value)
        if self.field == "order":
            return ORDERS[self.value]
        label = {"zone": zone_label, "alert": alert_title}.get(self.field, str)
        return f"{_NAMES.get(self.field, self.field)}: {label(self.value)}"


def offered_sessions(facets: Mapping[str, Sequence[str]], today: date) -> dict[str, Filter]:
    """Return the filters of sessions to choose from, by their text; *facets* are what the store has."""
    filters = [
        *(Filter("agent", name) for name in facets.get("agents", ())),
        *(Filter("live", reason) for reason in get_args(Attention)),
        *(Filter("zone", zone) for zone in reversed(ZONES)),
        Filter("reached", "red"),
        *(Filter("severity", severity) for severity in reversed(SEVERITIES)),
        *(Filter("order", order) for order in get_args(FleetOrder) if order in ORDERS),
        *(Filter("model", name) for name in facets.get("models", ())),
        *(Filter("source", name) for name in facets.get("sources", ())),
    ]
    return {one.text: one for one in filters} | _last_days(today)


def offered_alerts(sessions: Iterable[SessionRow], today: date) -> dict[str, Filter]:
    """Return the filters of alerts to choose from, by their text."""
    filters = [
        *(Filter("severity", severity) for severity in reversed(SEVERITIES)),
        *(Filter("state", state) for state in get_args(AlertState)),
        *(Filter("delivery", state) for state in get_args(DeliveryState)),
        *(Filter("alert", name) for name in RULES_BY_NAME),
    ]
    return {one.text: one for one in filters} | _last_days(today) | _sessions(sessions)


def offered_events(sessions: Iterable[SessionRow], today: date) -> dict[str, Filter]:
    """Return the filters of events to choose from, by their text."""
    filters = [Filter("order", "newest"), *(Filter("types", name) for name in PAYLOADS)]
    return {one.text: one for one in filters} | _last_days(today) | _sessions(sessions)


def _sessions(rows: Iterable[SessionRow]) -> dict[str, Filter]:
    by_text: dict[str, Filter] = {}
    for row in rows:
        text = f"session: {session_title(row)}"
        by_text[f"{text} · {row.session_id}" if text in by_text else text] = Filter("session", row.session_id)
    return by_text


def _last_days(today: date) -> dict[str, Filter]:
    return {
        "days: today" if days == 1 else f"days: last {days}": Filter(
            "dates", DateRange(today - timedelta(days=days - 1), today)
        )
        for days in LAST_DAYS
    }


def chosen(filters: Parameters, choices: Mapping[str, Filter]) -> dict[str, Filter]:
    """Return the filters that narrow or order the list, by their text; a session by that of the *choices*."""
    values = ((field.name, getattr(filters, field.name)) for field in fields(filters))
    present = [
        Filter(name, one)
        for name, value in values
        for one in (value if name == "types" else (value,))
        if name not in _NOT_CHIPS
    ]
    active = [one for one in present if one.value not in (None, "pressure")]
    titles = {one: text for text, one in choices.items() if one.field == "session"}
    return {titles.get(one, one.text): one for one in active}


def read(texts: Iterable[str], choices: Mapping[str, Filter], filters: Filters) -> Filters:
    """Return the filters that *texts* name, of the kind and project of *filters*; the last of one field counts.

    What is not one of the *choices* was typed: the id of a session, a range of days (`2026-03-02..2026-03-05`) or
    turns, or text.
    """
    choices = {**{str(one.value): one for one in choices.values() if one.field == "session"}, **choices}
    query = {} if filters.project is None else {"project": filters.project}
    for text in texts:
        for one in (choices[text],) if text in choices else _typed(text, filters):
            before = f"{query['types']}," if one.field == "types" and "types" in query else ""
            query[one.field] = f"{before}{one.value}"
    return filters.from_query(query)


def _typed(text: str, filters: Parameters) -> Sequence[Filter]:
    days, turns = DateRange.parse(text.removeprefix("days: ")), _TURNS.fullmatch(text)
    if days:
        return (Filter("dates", days),)
    if turns and isinstance(filters, AuditFilters):
        return Filter("turn_from", turns[1]), Filter("turn_to", turns[2] or turns[1])
    return (Filter("text", text),)
