"""Reads of long ranges: of the copy where there is one that is up to date, else of the store."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from windowpane.core.protocols import Clock
from windowpane.exceptions import ClickHouseError
from windowpane.store.clickhouse.reads import ClickHouseReader
from windowpane.store.filters import EventFilter
from windowpane.store.projections.trends import DAY_SECONDS
from windowpane.store.reads.export import ExportRow
from windowpane.store.reads.project_reader import EventReader
from windowpane.store.reads.reader import Reader
from windowpane.store.records import DamagedEvent, RepeatedDay, StoredEvent, ToolUse, TrendRow
from windowpane.text.formats import count

MAXIMUM_LAG_EVENTS: Final = 1_000
"""Missing events above which the store is read instead."""
RETRY_SECONDS: Final = 30.0
"""Time after a failure in which ClickHouse is not read: not every page waits for it."""

_FROM_STORE: Final = "this page shows what the store holds"
_NO_ANSWER: Final = f"ClickHouse did not answer; {_FROM_STORE}."

Result = TypeVar("Result")

_log: Final = logging.getLogger(__name__)


class Copy:
    """The copy as all pages share it: its reader, and when it failed last."""

    def __init__(self, reader: ClickHouseReader, *, monotonic: Clock = time.monotonic) -> None:
        self.reader = reader
        self._monotonic = monotonic
        self._failed_at: float | None = None

    @property
    def rests(self) -> bool:
        """It failed a moment ago and is not read yet."""
        return self._failed_at is not None and self._monotonic() - self._failed_at < RETRY_SECONDS

    def record_failure(self) -> None:
        """Do not read it for a while."""
        self._failed_at = self._monotonic()

    def lag_events(self, store: Reader) -> int | None:
        """Return the number of missing events; None if it is not a copy of *store*. Raises `ClickHouseError`."""
        position = self.reader.position(store.copy_identity())
        return None if position is None else max(0, store.newest_seq() - position)


class ReadsWithFallback:
    """The reads for one drawing of a page.

    *copy* is None where no ClickHouse is configured; *copied* is the store that it must be a copy of. Of some
    *projects* only the sums are read from the copy: the store knows at once that a session has moved to another.
    """

    def __init__(
        self,
        store: EventReader,
        copy: Copy | None = None,
        *,
        copied: Reader | None = None,
        projects: tuple[str, ...] | None = None,
    ) -> None:
        self._store = store
        self._copy = copy
        self._projects = projects
        self.note = ""
        """A sentence for readers where the copy is not complete; empty where nothing is missing."""
        self._uses_copy = copy is not None and copied is not None and self._is_usable(copy, copied)

    @property
    def uses_copy(self) -> bool:
        """The last read was one of the copy."""
        return self._uses_copy

    def trends(self, *, days: int, until: int | None = None) -> Sequence[TrendRow]:
        """Return the sums by day, agent, model and release of the *days* up to *until* (days since the epoch)."""
        return self._read_sums(lambda reads: reads.trends(days=days, until=until, projects=self._projects))

    def trends_of(self, sessions: Sequence[int], *, days: int, until: int) -> Sequence[TrendRow]:
        """Return the `trends` of some sessions; always of the store, which has their row numbers."""
        return self._store.trends_of(sessions, days=days, until=until)

    def repeated_days(self, *, days: int, until: int) -> Sequence[RepeatedDay]:
        """Return the sessions that `trends` counts on several rows; always of the store, which has an index."""
        return self._store.repeated_days(days=days, until=until)

    def tool_leaderboard(
        self, *, limit: int = 10, days: int, sessions: Sequence[int] | None = None
    ) -> Sequence[ToolUse]:
        """Return the tools that cost most in the latest *days*; in the store, in 200 of the *sessions*."""
        if self._copy is not None and self._uses_copy and sessions is None:
            try:
                return self._copy.reader.tool_leaderboard(limit=limit, days=days, projects=self._projects)
            except ClickHouseError as error:
                self._fall_back(self._copy, error)
        return self._store.tool_leaderboard(limit=limit, since=self.since(days), sessions=sessions)

    def since(self, days: int) -> float:
        """Return the start of the latest *days*, the last of which has an event."""
        last = max((row.day for row in self._store.trends(days=days)), default=0)
        return float((last - days + 1) * DAY_SECONDS)

    def events_or_damage(self, query: EventFilter) -> Sequence[StoredEvent | DamagedEvent]:
        """Return the events that match, by `seq`, with a `DamagedEvent` for each that cannot be read."""
        return self._read(lambda reads: reads.events_or_damage(query))

    def count_events(self, query: EventFilter) -> int:
        """Return the number of events that match, whatever the limit."""
        return self._read(lambda reads: reads.count_events(query))

    def facets(self) -> dict[str, tuple[str, ...]]:
        """Return the distinct agents, models, sources and event types, for filters."""
        return self._read(lambda reads: reads.facets())

    def export_batches(self, query: EventFilter) -> Iterator[list[ExportRow]]:
        """Yield every event that matches; from where the copy fails, those of the store."""
        if self._projects is None:
            for batch in self._copied_batches(query):
                query = replace(query, after_seq=batch[-1].seq)
                yield batch
        if not self._uses_copy or self._projects is not None:
            yield from self._store.export_batches(query)

    # -- internals --------------------------------------------------------------------------------------------

    def _is_usable(self, copy: Copy, copied: Reader) -> bool:
        """Return whether the copy holds what the store holds; otherwise `note` states what is missing."""
        if copy.rests:
            self.note = _NO_ANSWER
            return False
        try:
            lag = copy.lag_events(copied)
        except ClickHouseError as error:
            self._fall_back(copy, error)
            return False
        if lag is None:
            self.note = f"ClickHouse has no copy of this store; {_FROM_STORE}."
            return False
        if lag > MAXIMUM_LAG_EVENTS:
            self.note = (
                f"ClickHouse lacks the latest {count(lag, 'event')}; this page shows what the store holds."
            )
        elif lag > 0:
            self.note = f"ClickHouse lacks the latest {count(lag, 'event')}."
        return lag <= MAXIMUM_LAG_EVENTS

    def _read(self, read: Callable[[ClickHouseReader | EventReader], Result]) -> Result:
        return self._read_sums(read) if self._projects is None else read(self._store)

    def _read_sums(self, read: Callable[[ClickHouseReader | EventReader], Result]) -> Result:
        if self._copy is not None and self._uses_copy:
            try:
                return read(self._copy.reader)
            except ClickHouseError as error:
                self._fall_back(self._copy, error)
        return read(self._store)

    def _copied_batches(self, query: EventFilter) -> Iterator[list[ExportRow]]:
        if self._copy is None or not self._uses_copy:
            return
        try:
            yield from self._copy.reader.export_batches(query)
        except ClickHouseError as error:
            self._fall_back(self._copy, error)

    def _fall_back(self, copy: Copy, error: ClickHouseError) -> None:
        _log.warning("ClickHouse cannot be read, the store is read instead: %s", error)
        copy.record_failure()
        self._uses_copy = False
        self.note = _NO_ANSWER
