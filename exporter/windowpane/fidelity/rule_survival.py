"""Rules followed through the compactions of a session: kept, reworded, put back by the agent's program, or lost.

A compaction is looked at in the first call after it, or in a later one while memory is not back. Content that
neither was in the window nor is the summary was added in between: rules in it were put back by the agent's
program, as far as the user did not type it. Nothing is assumed of what a program puts back. A rule that an
earlier compaction lost is not lost again, but stays in the count by the number of compactions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from windowpane.core.events import ContentCompressed, Event, RulesFollowed
from windowpane.core.protocols import Digester
from windowpane.core.tracking import SessionTracker
from windowpane.core.window.blocks import Block

if TYPE_CHECKING:
    from windowpane.fidelity.rule_record import ObservedCompaction, RuleRecord

PUT_BACK_CALLS: Final = 5
"""Calls after a compaction in which memory may come back: the rules of a folder do when a file of it is read."""
Defer = Callable[[Callable[[], RulesFollowed], int], bool]
"""Runs a measurement of so many characters later; False if too many wait."""


class RuleFollower:
    """Follows the rules of one session, whose tracker it listens to."""

    def __init__(self, tracker: SessionTracker, *, digest: Digester, defer: Defer | None = None) -> None:
        """*defer* runs a measurement outside the agent's thread, one after the other, and records its event."""
        self._tracker = tracker
        self._digest = digest
        self._defer = defer
        self._count = self._calls = 0
        self._pending: ObservedCompaction | None = None
        self._record: RuleRecord | None = None
        tracker.compression_listeners.append(self._compressed)

    def _compressed(self, event: Event, removed: Sequence[Block]) -> None:
        data = event.data
        if not isinstance(data, ContentCompressed) or data.strategy != "compaction":
            return
        from windowpane.fidelity.rule_record import ObservedCompaction, RuleRecord  # few sessions are compacted

        self._record = self._record or RuleRecord(self._digest)
        self.finish(event.at)
        self._count, self._calls = self._count + 1, 0
        tracker, results = self._tracker, frozenset(data.results)
        remaining = tuple(block for block in tracker.window if block.id not in results)
        self._pending = ObservedCompaction(
            event.event_id, self._count, tracker.window_id, tuple(removed), remaining, results
        )
        memory = {one.digest for one in removed if one.content_type == "memory_injection" and one.text}
        tracker.on_call = partial(self._called, memory)

    def _called(self, memory: set[str], at: float | None) -> None:
        self._calls += 1
        if self._calls == PUT_BACK_CALLS or memory <= {one.digest for one in self._tracker.window}:
            self.finish(at)

    def finish(self, at: float | None = None) -> None:
        """Measure the last compaction, once enough calls followed or none can follow."""
        tracker, pending, self._pending = self._tracker, self._pending, None
        tracker.on_call = None
        if self._record is None or pending is None or pending.window_id != tracker.window_id:
            return  # nothing was compacted, or the user started anew
        measure = partial(self._record.measure, pending, tuple(tracker.window))
        if self._defer is None:
            tracker.record(measure(), at)
        elif not self._defer(measure, sum(block.chars for block in (*pending.removed, *pending.remaining))):
            reason = "too many evaluations wait"
            tracker.record(RulesFollowed(pending.of, pending.number, reason=reason), at)
