"""The filters of a page as short texts, which one search field offers and shows side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import date, timedelta
from typing import Any, Final, NamedTuple, TypeVar, get_args

from windowpane.alerts.rules import RULES_BY_NAME, alert_title
from windowpane.core.vocabulary import SEVERITIES, ZONES
from windowpane.store.filters import Attention, FleetOrder
from windowpane.store.records import SessionRow
from windowpane.text.zones import zone_label
from windowpane_dashboard.queries.filters import (
    AlertFilters,
    AlertState,
    DateRange,
    DeliveryState,
    FleetFilters,
    Parameters,
)
from windowpane_dashboard.queries.titles import session_title

ORDERS: Final[dict[FleetOrder, str]] = {
    "recent": "newest first",
    "cost": "highest cost first",
    "regret": "most needed again first",
}
LAST_DAYS: Final = (1, 7, 30)
_NAMES: Final = {"severity": "alert", "dates": "days", "delivery": "message"}
_NOT_CHIPS: Final = ("project", "pick")
Filters = TypeVar("Filters", FleetFilters, AlertFilters)


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
        *(Filter("severity", severity) for severity in reversed(SEVERITIES)),
        *(Filter("order", order) for order in ORDERS),
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
    by_text = {one.text: one for one in filters} | _last_days(today)
    for row in sessions:
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
    present = (Filter(field.name, getattr(filters, field.name)) for field in fields(filters))
    active = [one for one in present if one.field not in _NOT_CHIPS and one.value not in (None, "pressure")]
    titles = {one: text for text, one in choices.items() if one.field == "session"}
    return {titles.get(one, one.text): one for one in active}


def read(texts: Iterable[str], choices: Mapping[str, Filter], filters: Filters) -> Filters:
    """Return the filters that *texts* name, of the kind and project of *filters*; the last of one field counts.

    What is not one of the *choices* was typed: a range of days (`2026-03-02..2026-03-05`), or text.
    """
    query = {} if filters.project is None else {"project": filters.project}
    for text in texts:
        days = DateRange.parse(text.removeprefix("days: "))
        one = choices.get(text) or (Filter("dates", days) if days else Filter("text", text))
        query[one.field] = str(one.value)
    return filters.from_query(query)
