"""Which events were dropped, so that a gap in a stream's numbering is explained instead of suspected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from windowpane.events import Event, EventContext, TelemetryDropped

MAXIMUM_STREAMS: Final = 10_000


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
        self._gaps: dict[str, _Gap] = {}

    def __len__(self) -> int:
        """Streams with an untold gap."""
        return len(self._gaps)

    def add(self, events: Sequence[Event]) -> None:
        """Note that *events* were dropped."""
        for event in events:
            stream_id = event.context.stream_id
            known = self._gaps.pop(stream_id, None)
            if known is None and len(self._gaps) >= MAXIMUM_STREAMS:
                continue
            data = event.data
            first_n = data.first_n if isinstance(data, TelemetryDropped) else event.n
            if known is not None:
                first_n = min(first_n, known.first_n)
            self._gaps[stream_id] = _Gap(event.context, first_n, event.n, event.at)

    def tell(self, stream_id: str) -> list[Event]:
        """The event that explains the gap of one stream, or nothing.

        It takes the number of the last event that was dropped, which nothing else has.
        """
        gap = self._gaps.pop(stream_id, None)
        if gap is None:
            return []
        data = TelemetryDropped(gap.first_n, gap.last_n, self._reason)
        return [Event(gap.context, gap.last_n, gap.at, data)]

    def tell_all(self) -> list[Event]:
        """The events that explain every gap."""
        return [event for stream_id in list(self._gaps) for event in self.tell(stream_id)]
