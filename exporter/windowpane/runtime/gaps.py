"""Which events were dropped, so that a gap in a stream's numbering is explained instead of suspected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from windowpane.core.events import Event, EventContext, TelemetryDropped

MAXIMUM_STREAMS: Final = 10_000
MAXIMUM_GAPS: Final = 64
"""Of one stream; further ones widen the last."""


@dataclass(frozen=True, slots=True)
class _Gap:
    context: EventContext
    first_n: int
    last_n: int
    at: float | None


class Gaps:
    """Dropped events by stream, until they are told about.

    Every read takes its entry out in one step, so a producer and the worker never tell about the same gap twice;
    a stream's own events are dropped by one thread at a time.
    """

    def __init__(self, reason: str) -> None:
        self._reason = reason
        self._gaps: dict[str, list[_Gap]] = {}

    def __len__(self) -> int:
        """Streams with an untold gap."""
        return len(self._gaps)

    def add(self, events: Sequence[Event]) -> None:
        """Note that *events* were dropped."""
        for event in events:
            stream_id = event.context.stream_id
            known = self._gaps.pop(stream_id, [])
            if not known and len(self._gaps) >= MAXIMUM_STREAMS:
                continue
            data = event.data
            first_n = data.first_n if isinstance(data, TelemetryDropped) else event.n
            if known and (first_n == known[-1].last_n + 1 or len(known) >= MAXIMUM_GAPS):
                first_n = known.pop().first_n
            self._gaps[stream_id] = [*known, _Gap(event.context, first_n, event.n, event.at)]

    def tell(self, stream_id: str) -> list[Event]:
        """The events that explain the gaps of one stream.

        Each takes the number of the last event of its gap, which nothing else has.
        """
        return [
            Event(gap.context, gap.last_n, gap.at, TelemetryDropped(gap.first_n, gap.last_n, self._reason))
            for gap in self._gaps.pop(stream_id, [])
        ]

    def tell_all(self) -> list[Event]:
        """The events that explain every gap."""
        return [event for stream_id in list(self._gaps) for event in self.tell(stream_id)]
