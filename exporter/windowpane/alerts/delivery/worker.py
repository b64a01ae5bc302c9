"""Delivery to one channel: grouped by session, rate-limited, retried with growing pauses.

Each channel has a worker, so that a channel that hangs delays no other. The outbox bounds the queue.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from windowpane.alerts.delivery.channels import Channel, DeliveryError
from windowpane.alerts.delivery.message import message_of
from windowpane.alerts.delivery.outbox import Outbox, QueuedAlert
from windowpane.core.quiet_hours import QuietHours
from windowpane.effects.error_boundary import ErrorBoundary

IDLE_SECONDS: Final = 30.0
"""Maximum time between two checks for messages of other processes."""
SHORTEST_PAUSE_SECONDS: Final = 0.01


@dataclass(frozen=True, slots=True)
class DeliverySettings:
    """Grouping, rate limit and retries of messages; times in seconds."""

    group_seconds: float = 2.0
    """Time a message waits for others of its session."""
    retry_seconds: float = 5.0
    """Pause after the first failure; doubles with each."""
    retry_maximum_seconds: float = 600.0
    age_maximum_seconds: float = 86_400.0
    """Age from which a message that fails is abandoned."""
    lease_seconds: float = 60.0
    """Time after which the messages of an unresponsive process are taken over."""
    messages_per_minute: int = 20
    """Maximum rate of each channel."""


FindUrl = Callable[[], str | None]
"""Returns the address of the dashboard, if it is known."""


def no_url() -> None:
    """Return that the dashboard has no known address."""


class ReportOutcome(Protocol):
    """Receives the outcome of attempts to deliver."""

    def __call__(self, channel: Channel, alerts: Sequence[QueuedAlert], outcome: str, reason: str = "") -> None:
        """Receive an *outcome*: `delivered`, `retried` or `failed`."""
        ...


class RateLimit:
    """A token bucket: a burst of one minute's messages, refilled evenly."""

    def __init__(self, per_minute: int) -> None:
        self._rate = per_minute / 60
        self._capacity = float(per_minute)
        self._tokens = self._capacity
        self._updated_at: float | None = None

    def consume(self, now: float) -> float:
        """Use one token; return 0, or the seconds until one is available."""
        if self._updated_at is not None:
            elapsed = max(0.0, now - self._updated_at)
            self._tokens = min(self._capacity, self._tokens + elapsed * self._rate)
        self._updated_at = now
        if self._tokens < 1:
            return (1 - self._tokens) / self._rate
        self._tokens -= 1
        return 0.0


class ChannelWorker:
    """Delivers the queued alerts of one channel. Thread-safe: one thread at a time delivers."""

    def __init__(
        self,
        channel: Channel,
        outboxes: Sequence[Outbox],
        *,
        settings: DeliverySettings,
        report: ReportOutcome,
        clock: Callable[[], float],
        boundary: ErrorBoundary,
        public_url: FindUrl = no_url,
        quiet_hours: QuietHours | None = None,
    ) -> None:
        """During *quiet_hours* the channel receives only critical alerts; *public_url* finds the dashboard."""
        self.channel = channel
        self._outboxes = tuple(outboxes)
        self._settings = settings
        self._report = report
        self._clock = clock
        self._boundary = boundary
        self._public_url = public_url
        self._quiet_hours = quiet_hours
        self._limit = RateLimit(settings.messages_per_minute)
        self.after_fork()

    def after_fork(self) -> None:
        """Reset the state in a forked child, where no thread delivers."""
        self._delivering = threading.Lock()
        self._outbox_failed = False

    def deliver_due(self, *, within_seconds: float = 0.0) -> int:
        """Deliver alerts that are due within some seconds; return how many were sent or abandoned."""
        handled = 0
        with self._delivering:
            self._outbox_failed = False
            for outbox in self._outboxes:
                with self._boundary.contain("delivering alerts", failed=self._mark_failed):
                    due_by = self._clock() + within_seconds
                    while alerts := self._lease(outbox, due_by):
                        handled += self._deliver(outbox, alerts)
        return handled

    def pause(self) -> float:
        """Return the seconds until an alert is due for the channel."""
        if self._outbox_failed:
            return self._settings.retry_seconds
        due: list[float] = []
        for outbox in self._outboxes:
            with self._boundary.contain("reading the outbox"):
                if (at := outbox.next_due(self.channel.key)) is not None:
                    due.append(at)
        return min(max(min(due) - self._clock(), SHORTEST_PAUSE_SECONDS), IDLE_SECONDS) if due else IDLE_SECONDS

    def _mark_failed(self) -> None:
        self._outbox_failed = True

    def _lease(self, outbox: Outbox, due_by: float) -> list[QueuedAlert]:
        now = self._clock()
        until = now + self._settings.lease_seconds
        return outbox.lease(self.channel.key, now=now, due_by=due_by, until=until)

    def _deliver(self, outbox: Outbox, alerts: list[QueuedAlert]) -> int:
        now = self._clock()
        alerts = self._outside_quiet_hours(outbox, alerts, now)
        if not alerts:
            return 0
        wait = self._limit.consume(now)
        if wait > 0:
            outbox.defer(alerts, due_at=now + wait)
            return 0
        public_url = self._public_url()
        messages = (message_of(alert.event, public_url=public_url) for alert in alerts)
        try:
            self.channel.send([message for message in messages if message is not None])
        except DeliveryError as error:
            return self._failed(outbox, alerts, str(error), minimum_pause=error.retry_after_seconds)
        except Exception as error:  # noqa: BLE001  # a bug in a channel is a failed delivery too
            return self._failed(outbox, alerts, type(error).__name__)
        outbox.complete(alerts, now=self._clock())
        self._report(self.channel, alerts, "delivered")
        return len(alerts)

    def _outside_quiet_hours(self, outbox: Outbox, alerts: list[QueuedAlert], now: float) -> list[QueuedAlert]:
        """Return the alerts that may be sent now; the others are deferred to the end of the quiet hours."""
        until = None if self._quiet_hours is None else self._quiet_hours.until(now)
        if until is None:
            return alerts
        urgent = [alert for alert in alerts if getattr(alert.event.data, "severity", None) == "critical"]
        waiting = [alert for alert in alerts if alert not in urgent]
        if waiting:
            outbox.defer(waiting, due_at=until)
        return urgent

    def _failed(
        self, outbox: Outbox, alerts: list[QueuedAlert], reason: str, *, minimum_pause: float = 0.0
    ) -> int:
        """Schedule a retry, not before *minimum_pause* seconds; abandon alerts that are too old."""
        now = self._clock()
        settings = self._settings
        old = [alert for alert in alerts if now - alert.queued_at >= settings.age_maximum_seconds]
        young = [alert for alert in alerts if alert not in old]
        if young:
            attempts = min(alert.attempts for alert in young)
            pause = min(settings.retry_seconds * 2 ** min(attempts, 20), settings.retry_maximum_seconds)
            outbox.postpone(young, due_at=now + max(pause, minimum_pause))
            self._report(self.channel, young, "retried")
            self._boundary.warn(
                f"retry {self.channel.key}", "an alert was not delivered: %s; trying again", reason
            )
        if old:
            outbox.complete(old, now=now)
            self._report(self.channel, old, "failed", reason)
        return len(old)
