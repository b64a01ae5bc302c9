"""The filters of the fleet as short texts, which one search field offers and shows side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import date, timedelta
from typing import Any, Final, NamedTuple, get_args

from windowpane.core.vocabulary import SEVERITIES, ZONES
from windowpane.store.filters import Attention, FleetOrder
from windowpane.text.zones import zone_label
from windowpane_dashboard.queries.filters import DateRange, FleetFilters

ORDERS: Final[dict[FleetOrder, str]] = {
    "recent": "newest first",
    "cost": "highest cost first",
    "regret": "most needed again first",
}
LAST_DAYS: Final = (1, 7, 30)
_NAMES: Final = {"severity": "alert", "dates": "days"}


class Filter(NamedTuple):
    """One field of `FleetFilters` with a value."""

    field: str
    value: Any

    @property
    def text(self) -> str:
        """The filter as it is shown: `agent: codex`, `zone: ● red`, `newest first`; typed text as it is."""
        if self.field == "text":
            return str(self.value)
        if self.field == "order":
            return ORDERS[self.value]
        value = zone_label(self.value) if self.field == "zone" else self.value
        return f"{_NAMES.get(self.field, self.field)}: {value}"


def offered(facets: Mapping[str, Sequence[str]], today: date) -> dict[str, Filter]:
    """Return the filters to choose from, by their text; *facets* are what the store has."""
    filters = [
        *(Filter("agent", name) for name in facets.get("agents", ())),
        *(Filter("live", reason) for reason in get_args(Attention)),
        *(Filter("zone", zone) for zone in reversed(ZONES)),
        *(Filter("severity", severity) for severity in reversed(SEVERITIES)),
        *(Filter("order", order) for order in ORDERS),
        *(Filter("model", name) for name in facets.get("models", ())),
        *(Filter("source", name) for name in facets.get("sources", ())),
    ]
    by_text = {one.text: one for one in filters}
    for days in LAST_DAYS:
        name = "days: today" if days == 1 else f"days: last {days}"
        by_text[name] = Filter("dates", DateRange(today - timedelta(days=days - 1), today))
    return by_text


def chosen(filters: FleetFilters) -> dict[str, Filter]:
    """Return the filters that narrow or order the list, by their text."""
    present = (Filter(field.name, getattr(filters, field.name)) for field in fields(filters))
    active = [one for one in present if one.field != "project" and one.value not in (None, "pressure")]
    return {one.text: one for one in active}


def read(texts: Iterable[str], choices: Mapping[str, Filter], *, project: str | None) -> FleetFilters:
    """Return the filters that *texts* name; of several for one field the last counts.

    What is not one of the *choices* was typed: a range of days (`2026-03-02..2026-03-05`), or text.
    """
    query = {} if project is None else {"project": project}
    for text in texts:
        days = DateRange.parse(text.removeprefix("days: "))
        one = choices.get(text) or (Filter("dates", days) if days else Filter("text", text))
        query[one.field] = str(one.value)
    return FleetFilters.from_query(query)
