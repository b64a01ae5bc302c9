"""The facts of a tracker without any text, as a store may hold them, and what is concluded from them again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from windowpane.core.codec import decode, encode
from windowpane.core.events import Event, EventContext, Usage
from windowpane.core.tracking import SessionTracker
from windowpane.core.tracking.conclusions import Conclusions
from windowpane.core.tracking.facts import CallEnding, SessionFact, Statement
from windowpane.models.catalog import packaged_catalog


class Concluded:
    """The facts of trackers as a store may hold them, and what is concluded from them again."""

    def __init__(self) -> None:
        self.facts: list[SessionFact] = []
        self._settings: dict[str, Any] = {}

    def tracker(self, info: Any, *, clock: Any = None, digest: Any, **settings: Any) -> SessionTracker:
        """Make a tracker whose facts are kept."""
        self._info, self._settings = info, settings
        return SessionTracker(
            info, clock=clock, digest=digest, on_fact=lambda fact: self.facts.append(stored(fact)), **settings
        )

    def again(self) -> list[Event]:
        """Conclude from the facts."""
        events: list[Event] = []
        conclusions = Conclusions(self._info, **{**self._settings, "emit": events.extend})
        for fact in self.facts:
            conclusions.conclude(fact, price_of(conclusions, fact))
        conclusions.flush()
        return events


def price_of(conclusions: Conclusions, fact: SessionFact) -> Callable[[Usage], float | None] | None:
    if not isinstance(fact, CallEnding):
        return None
    model, at = conclusions.info.model, fact.at
    return lambda usage: packaged_catalog().cost_dollars(model, usage, at)


def stored(fact: SessionFact) -> SessionFact:
    """Write the fact as JSON without the texts of its blocks, and read it again."""
    if isinstance(fact, Statement):
        event = Event(EventContext("s", "a", "", 0, 1, "test", "s"), 0, None, fact.payload)
        return Statement(fact.at, decode(encode(event)).data)
    document = msgspec.json.encode(without_text(msgspec.to_builtins(fact)))
    return msgspec.json.decode(document, type=type(fact))


def without_text(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [without_text(item) for item in value]
    if isinstance(value, dict):
        return {name: without_text(item) for name, item in value.items() if name != "text"}
    return value
