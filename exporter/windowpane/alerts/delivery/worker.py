"""Delivers what waits for one channel: grouped by session, at a limited rate, tried again with growing pauses.

Each channel has its own, so that one that hangs keeps nobody else waiting. What is queued for it is bounded by
the outbox.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from windowpane.alerts.delivery.channels import Channel, DeliveryError
from windowpane.alerts.delivery.message import message_of
from windowpane.alerts.delivery.outbox import Letter, Outbox
from windowpane.alerts.delivery.quiet_hours import QuietHours
from windowpane.alerts.delivery.rate_limit import RateLimit
from windowpane.effects.error_boundary import ErrorBoundary

IDLE_SECONDS: Final = 30.0
"""Look for what other processes left behind at least this often."""
SHORTEST_PAUSE_SECONDS: Final = 0.01


@dataclass(frozen=True, slots=True)
class DeliverySettings:
    """How messages are grouped, limited and tried again; seconds."""

    group_seconds: float = 2.0
    """How long a message waits for others of its session."""
    retry_seconds: float = 5.0
    """Pause after the first failure; doubles with each."""
    retry_maximum_seconds: float = 600.0
    age_maximum_seconds: float = 86_400.0
    """Older messages are given up."""
    lease_seconds: float = 60.0
    """A process that has not answered for so long is taken for dead."""
    messages_a_minute: int = 20
    """Of each channel."""


class Tell(Protocol):
    """Hears what became of messages."""

    def __call__(self, channel: Channel, letters: Sequence[Letter], outcome: str, reason: str = "") -> None:
        """*outcome* is `delivered`, `retried` or `failed`."""
        ...


class Delivery:
    """One channel and what waits for it. Thread-safe: one thread at a time delivers."""

    def __init__(
        self,
        channel: Channel,
        outboxes: Sequence[Outbox],
        *,
        settings: DeliverySettings,
        tell: Tell,
        clock: Callable[[], float],
        boundary: ErrorBoundary,
        public_url: str | None = None,
        quiet: QuietHours | None = None,
    ) -> None:
        """*quiet* are hours in which the channel hears of critical alerts only."""
        self.channel = channel
        self._outboxes = tuple(outboxes)
        self._settings = settings
        self._tell = tell
        self._clock = clock
        self._boundary = boundary
        self._public_url = public_url
        self._quiet = quiet
        self._limit = RateLimit(settings.messages_a_minute)
        self.after_fork()

    def after_fork(self) -> None:
        """Start over in a forked child, where nobody delivers."""
        self._delivering = threading.Lock()
        self._troubled = False

    def due(self, *, within_seconds: float = 0.0) -> int:
        """Deliver what is due now, or within some seconds; returns how many messages were sent or given up."""
        handled = 0
        with self._delivering:
            self._troubled = False
            for outbox in self._outboxes:
                with self._boundary.contain("delivering alerts", failed=self._trouble):
                    due_by = self._clock() + within_seconds
                    while letters := self._lease(outbox, due_by):
                        handled += self._deliver(outbox, letters)
        return handled

    def pause(self) -> float:
        """Seconds until something is due for the channel."""
        if self._troubled:
            return self._settings.retry_seconds
        due: list[float] = []
        for outbox in self._outboxes:
            with self._boundary.contain("reading the outbox"):
                due += [at for at in (outbox.next_due((self.channel.key,)),) if at is not None]
        return min(max(min(due) - self._clock(), SHORTEST_PAUSE_SECONDS), IDLE_SECONDS) if due else IDLE_SECONDS

    # -- inside -----------------------------------------------------------------------------------------------

    def _trouble(self) -> None:
        self._troubled = True

    def _lease(self, outbox: Outbox, due_by: float) -> list[Letter]:
        now = self._clock()
        until = now + self._settings.lease_seconds
        return outbox.lease(self.channel.key, now=now, due_by=due_by, until=until)

    def _deliver(self, outbox: Outbox, letters: list[Letter]) -> int:
        now = self._clock()
        letters = self._awake(outbox, letters, now)
        if not letters:
            return 0
        wait = self._limit.take(now)
        if wait > 0:
            outbox.hold(letters, due_at=now + wait)
            return 0
        made = (message_of(letter.event, public_url=self._public_url) for letter in letters)
        try:
            self.channel.send([message for message in made if message is not None])
        except DeliveryError as error:
            return self._failed(outbox, letters, str(error), at_least=error.retry_after_seconds)
        except Exception as error:  # noqa: BLE001  # a channel's own fault is a failed delivery too
            return self._failed(outbox, letters, type(error).__name__)
        outbox.done(letters, now=self._clock())
        self._tell(self.channel, letters, "delivered")
        return len(letters)

    def _awake(self, outbox: Outbox, letters: list[Letter], now: float) -> list[Letter]:
        """The letters that may be sent now; the others wait for the end of the channel's quiet hours."""
        until = None if self._quiet is None else self._quiet.until(now)
        if until is None:
            return letters
        urgent = [letter for letter in letters if getattr(letter.event.data, "severity", None) == "critical"]
        waiting = [letter for letter in letters if letter not in urgent]
        if waiting:
            outbox.hold(waiting, due_at=until)
        return urgent

    def _failed(self, outbox: Outbox, letters: list[Letter], reason: str, *, at_least: float = 0.0) -> int:
        """Try again later, not before *at_least* seconds; give up what is too old."""
        now = self._clock()
        settings = self._settings
        old = [letter for letter in letters if now - letter.queued_at >= settings.age_maximum_seconds]
        young = [letter for letter in letters if letter not in old]
        if young:
            attempts = min(letter.attempts for letter in young)
            pause = min(settings.retry_seconds * 2 ** min(attempts, 20), settings.retry_maximum_seconds)
            outbox.postpone(young, due_at=now + max(pause, at_least))
            self._tell(self.channel, young, "retried")
            self._boundary.warn(
                f"retry {self.channel.key}", "an alert was not delivered: %s; trying again", reason
            )
        if old:
            outbox.done(old, now=now)
            self._tell(self.channel, old, "failed", reason)
        return len(old)
