"""One sink of the pipeline: what it takes, what it fails to take, and how little that may be.

A sink that says it is `atomic` takes a batch whole or not at all. When such a sink refuses a batch because of
what is in it, the batch is halved until only the events at fault are left out: one bad event costs one event.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from windowpane.core.events import Event, TelemetryDropped
from windowpane.core.protocols import EventSink
from windowpane.runtime.gaps import Gaps

BAD_DATA: Final = (ValueError, TypeError, OverflowError, LookupError)
"""What a sink raises about an event, and not about the world; halving would not help against the latter."""


class Failure(NamedTuple):
    """Events that a sink did not take."""

    error: Exception
    """The last of the errors."""
    events: int


class Lane:
    """A sink with its name and the account of what it missed."""

    def __init__(self, name: str, sink: EventSink) -> None:
        self.name = name
        self.sink = sink
        self._gaps = Gaps("sink_failed")

    def after_fork(self) -> None:
        """Forget the parent's account, and let the sink start over."""
        self._gaps = Gaps("sink_failed")
        self.tell("after_fork")

    def tell(self, hook: str) -> None:
        """Call the sink's *hook* if it has one: `flush`, or one about a fork. Raises what the sink does."""
        method = getattr(self.sink, hook, None)
        if method is not None:
            method()

    def write(self, events: Sequence[Event]) -> Failure | None:
        """Write *events* after an account of those that failed before; returns what failed now."""
        batch = [*self._account(events), *events] if self._gaps else events
        return self._attempt(batch, divisible=getattr(self.sink, "atomic", False))

    def _account(self, events: Sequence[Event]) -> list[Event]:
        """What explains the gaps, with context and time of events that go on where there are any."""
        going_on = {event.context.stream_id: event for event in reversed(events)}
        told = []
        for account in self._gaps.tell_all():
            event = going_on.get(account.context.stream_id, account)
            told.append(account._replace(context=event.context, at=event.at))
        return told

    def _attempt(self, batch: Sequence[Event], *, divisible: bool) -> Failure | None:
        try:
            self.sink.write(batch)
        except BAD_DATA as error:
            if not divisible:
                return self._lost(batch, error)
            if len(batch) == 1:
                return self._lost([event for event in batch if not _is_account(event)], error)
        except Exception as error:  # noqa: BLE001  # one sink's failure is not another's
            return self._lost(batch, error)
        else:
            return None
        middle = len(batch) // 2
        halves = [self._attempt(part, divisible=True) for part in (batch[:middle], batch[middle:])]
        failures = [failure for failure in halves if failure is not None]
        return Failure(failures[-1].error, sum(failure.events for failure in failures)) if failures else None

    def _lost(self, batch: Sequence[Event], error: Exception) -> Failure:
        self._gaps.add(batch)
        return Failure(error, sum(not _is_account(event) for event in batch))


def _is_account(event: Event) -> bool:
    return isinstance(event.data, TelemetryDropped)
