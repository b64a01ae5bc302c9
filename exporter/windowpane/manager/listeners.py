"""Callbacks of one managed session: events, preset records, compactions, and the audit trail of its decisions."""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, TypeVar

from windowpane.core.events import (
    PAYLOADS,
    BlocksEvicted,
    BreakerOpened,
    BudgetBlocked,
    BudgetWarned,
    CheckpointLoaded,
    CheckpointRejected,
    CheckpointSaved,
    ContentCompressed,
    Event,
    HistoryRepaired,
    NoteWritten,
    OverflowDetected,
    SubagentDelegated,
    SubagentReturned,
    UsageRejected,
    WindowRolled,
    ZoneChanged,
)
from windowpane.effects.commands import CompactionProposal
from windowpane.exceptions import ConfigurationError

T = TypeVar("T")
EventListener = Callable[[Event], object]
CompactionCallback = Callable[[CompactionProposal], object]
"""Called before a compaction is applied; returning False prevents it."""

AUDITED_EVENTS: Final = 1_000
"""Length of a session's audit trail; the store has every event."""
AUDITED: Final = frozenset(
    payload.type
    for payload in (
        BlocksEvicted, BreakerOpened, BudgetBlocked, BudgetWarned, CheckpointLoaded, CheckpointRejected,
        CheckpointSaved, ContentCompressed, HistoryRepaired, NoteWritten, OverflowDetected, SubagentDelegated,
        SubagentReturned, UsageRejected, WindowRolled, ZoneChanged,
    )
)  # fmt: skip
"""Types of events that record a decision."""

MAXIMUM_RECORDS: Final = 1_000
"""Pending preset records of a session; later ones are dropped."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """One event or log line in the names that a preset's source uses, for readers who know its logs."""

    name: str
    """The event's name, or the log line's prefix."""
    fields: Mapping[str, object]
    text: str
    """The line for people."""


class Journal:
    """The preset records of one session that listeners have not received yet."""

    def __init__(self) -> None:
        self._records: list[SourceRecord] = []

    def __bool__(self) -> bool:
        return bool(self._records)

    def record(self, name: str, text: str, **fields: object) -> None:
        """Add a record, unless too many are pending."""
        if len(self._records) < MAXIMUM_RECORDS:
            self._records.append(SourceRecord(name, fields, text))

    def consume(self) -> list[SourceRecord]:
        """Return the records since the last call."""
        records, self._records = self._records, []
        return records


RecordListener = Callable[[SourceRecord], object]


class Listeners:
    """The callbacks of one session. They are called without its lock, and their exceptions are logged."""

    def __init__(self) -> None:
        self.audit_trail: deque[Event] = deque(maxlen=AUDITED_EVENTS)
        self._by_event: dict[str, list[EventListener]] = {}
        self._on_record: list[RecordListener] = []
        self._before_compaction: list[CompactionCallback] = []
        self._pending: list[Event] = []
        self._failures: Counter[int] = Counter()
        """Failed calls by listener."""

    @property
    def failed_calls(self) -> int:
        """Number of calls of listeners and callbacks that raised an exception."""
        return self._failures.total()

    @property
    def has_event_listeners(self) -> bool:
        """True if anything listens to events, which are then handed over after each hook."""
        return bool(self._by_event)

    @property
    def has_pending(self) -> bool:
        """True if events wait to be passed to listeners."""
        return bool(self._pending)

    def add(self, event_name: str, listener: EventListener) -> None:
        """Register *listener* for events of that name, `*` for all. Raises `ConfigurationError`."""
        check_callable("on", listener)
        if event_name != "*" and event_name not in PAYLOADS:
            near = ", ".join(get_close_matches(event_name, PAYLOADS)) or "an event's name, or *"
            raise ConfigurationError("on", f"there is no event {event_name!r}", expected=near)
        self._by_event.setdefault(event_name, []).append(listener)

    def add_record_listener(self, listener: RecordListener) -> None:
        """Register *listener* for the records of the session's preset."""
        self._on_record.append(listener)

    def add_compaction_callback(self, callback: CompactionCallback) -> None:
        """Register *callback* for compactions. Raises `ConfigurationError`."""
        check_callable("before_compaction", callback)
        self._before_compaction.append(callback)

    def collect(self, batch: list[Event]) -> None:
        """Add a batch of events to the audit trail and to the events that listeners receive next."""
        self.audit_trail.extend(event for event in batch if event.type in AUDITED)
        if self._by_event:
            self._pending.extend(
                event for event in batch if event.type in self._by_event or "*" in self._by_event
            )

    def consume_pending(self) -> list[Event]:
        """Return the events that listeners have not received yet."""
        pending, self._pending = self._pending, []
        return pending

    def notify(self, events: list[Event], records: list[SourceRecord]) -> None:
        """Pass *events* and *records* to the listeners, in order."""
        for event in events:
            for listener in (*self._by_event.get(event.type, ()), *self._by_event.get("*", ())):
                self._call(listener, event, event.type)
        for record in records:
            _log.info("%s", record.text)
            for record_listener in self._on_record:
                self._call(record_listener, record, record.name)

    def confirm_compaction(self, proposal: CompactionProposal) -> bool:
        """Return False if a callback prevents the compaction; one that fails prevents nothing."""
        return all(self._confirms(callback, proposal) for callback in self._before_compaction)

    def _confirms(self, callback: CompactionCallback, proposal: CompactionProposal) -> bool:
        try:
            return callback(proposal) is not False
        except Exception as error:  # noqa: BLE001 (the user's code)
            self._record_failure(callback, "a before_compaction callback failed; the compaction proceeds", error)
            return True

    def _call(self, listener: Callable[[T], object], what: T, name: str) -> None:
        try:
            listener(what)
        except Exception as error:  # noqa: BLE001 (the user's code)
            self._record_failure(listener, f"a listener of {name} failed", error)

    def _record_failure(self, listener: Callable[..., object], text: str, error: Exception) -> None:
        """Count a failed call; only a listener's first one is logged."""
        self._failures[id(listener)] += 1
        if self._failures[id(listener)] == 1:
            _log.error("%s; further failures of it are counted, not logged", text, exc_info=error)


def check_callable(what: str, given: object) -> None:
    """Raise `ConfigurationError` if *given* cannot be called."""
    if not callable(given):
        raise ConfigurationError(what, f"{given!r} cannot be called", expected="a function")
