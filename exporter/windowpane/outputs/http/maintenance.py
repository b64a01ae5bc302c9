"""Maintenance of a store: verifying its audit chain and deleting old sessions.

A broken chain is an alert like any other: it fires once, is stored with its session and appears in the metrics.
The counters of deleted sessions are added to the store's metric base, so no counter ever falls.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from windowpane.alerts.engine import AlertEngine
from windowpane.core.events import Event, EventContext
from windowpane.core.vocabulary import OWN_SOURCE
from windowpane.exceptions import StoreError
from windowpane.metrics.fold import MetricState
from windowpane.metrics.labels import LabelPolicy, model_label
from windowpane.models.catalog import packaged_catalog
from windowpane.store.writes.retention import ProjectScope

if TYPE_CHECKING:
    from windowpane.alerts.rules import Rule
    from windowpane.config.projects import ProjectRetention
    from windowpane.core.protocols import Clock
    from windowpane.store.records import StoredEvent, Verification
    from windowpane.store.store import Store

CHAIN_ALERT: Final = "audit_chain_broken"
STORE_SESSION: Final = "windowpane-audit"
"""The session that an alert about the store itself is recorded in."""
DAY_SECONDS: Final = 86_400.0

_log = logging.getLogger(__name__)


def store_labels(store: Store) -> LabelPolicy:
    """Return the mapping of agents and models to labels that every process sharing *store* uses."""
    return LabelPolicy(agent=store.admit_agent, model=model_label(packaged_catalog()))


class StoreMaintenance:
    """Verifies and prunes one store; called regularly by its owner. Not thread-safe."""

    def __init__(
        self,
        store: Store,
        *,
        rules: Sequence[Rule],
        labels: LabelPolicy | None = None,
        clock: Clock = time.time,
        on_alert: Callable[[Sequence[Event]], None] | None = None,
    ) -> None:
        """*on_alert* receives alerts about the chain before they are stored; *labels* default to the store's."""
        self._store = store
        self._labels = labels or store_labels(store)
        self._clock = clock
        self._on_alert = on_alert
        self._engine = AlertEngine(rules)
        self._stream = f"upkeep-{secrets.token_hex(6)}"
        self._broken: dict[str, EventContext] = {}

    def verify(self) -> Verification:
        """Verify the audit chain; a broken session is logged and fires one alert until it is intact again.

        Without the rows that pages read: comparing them takes five times as long.
        """
        verification = self._store.verify(projections=False)
        broken = {link.session_id or STORE_SESSION: link for link in reversed(verification.broken)}
        for session_id, link in broken.items():
            if session_id not in self._broken:
                _log.critical("audit chain broken: session %s, event %s: %s", session_id, link.seq, link.problem)
                self._broken[session_id] = context = self._context(session_id)
                self._report(context, holds=True)
        for session_id in [repaired for repaired in self._broken if repaired not in broken]:
            self._report(self._broken.pop(session_id), holds=False)
        return verification

    def prune(
        self, *, days: float, max_bytes: int, projects: Mapping[str, ProjectRetention] | None = None
    ) -> int:
        """Delete whole sessions older than *days*, then the oldest beyond *max_bytes*; returns how many.

        A project with days keeps its sessions for these, and what it has beyond its bytes is deleted, too;
        *max_bytes* is for the store as a whole.
        """
        deleted, own_days = 0, []
        for name, retention in (projects or {}).items():
            before = None if retention.days is None else self._before(retention.days)
            deleted += self._store.prune(
                before=before, max_bytes=retention.bytes, fold=self.fold, scope=ProjectScope(name)
            )
            if retention.days is not None:
                own_days.append(name)
        others = ProjectScope(except_for=tuple(own_days))
        deleted += self._store.prune(before=self._before(days), fold=self.fold, scope=others)
        return deleted + self._store.prune(max_bytes=max_bytes, fold=self.fold)

    def _before(self, days: float) -> float:
        return self._clock() - days * DAY_SECONDS

    def fold(self, base: bytes | None, events: Iterable[StoredEvent]) -> bytes:
        """Return the metric base plus the counters of a deleted session's events."""
        state = MetricState(labels=self._labels)
        if base is not None:
            state.load(base)
        for stored in events:
            state.apply(stored.event, counted=stored.counted)
        return state.dump()

    def _report(self, context: EventContext, *, holds: bool) -> None:
        events = self._engine.report(CHAIN_ALERT, holds=holds, context=context, at=self._clock())
        if not events:
            return
        if self._on_alert is not None:
            self._on_alert(events)
        try:
            self._store.append(events)
        except StoreError as error:
            _log.error("the alert about the audit chain is not recorded: %s", error)

    def _context(self, session_id: str) -> EventContext:
        try:
            row = self._store.session(session_id)
        except StoreError:  # the row is damaged, which may be why the alert fires
            row = None
        return EventContext(
            session_id=session_id,
            agent=row.agent if row else "",
            model=row.model if row else "",
            turn=row.turns if row else 0,
            window_id=row.windows if row else 1,
            source=row.source if row else OWN_SOURCE,
            stream_id=f"{self._stream}:{session_id}",
        )
