"""Delivers alerts: at least once, without waiting for anybody, and without telling twice.

The notifier is a sink. It writes alerts to the outbox and a thread for each channel delivers them: due messages
of one session go together, each channel has a rate limit, a failure is tried again with growing pauses until the
message is too old. A channel that hangs keeps only its own messages waiting. What happened to each message
becomes an event.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from windowpane.alerts.delivery.channels import Channel, DeliveryError, channel_for
from windowpane.alerts.delivery.message import AlertMessage, message_of
from windowpane.alerts.delivery.notices import notice
from windowpane.alerts.delivery.outbox import Entry, Letter, Outbox, held_by_another
from windowpane.alerts.delivery.quiet_hours import QuietHours
from windowpane.alerts.delivery.worker import Delivery, DeliverySettings
from windowpane.core.events import Event
from windowpane.effects.error_boundary import ErrorBoundary

_log = logging.getLogger("windowpane.alerts")

CountNotifications = Callable[[str, str], None]
"""Kind of channel, and outcome: `delivered`, `retried` or `failed`."""
Emit = Callable[[list[Event]], None]

UNSAVED_ENTRIES: Final = 1_000
"""Messages kept in memory while the outbox cannot be written; the oldest go first."""


@dataclass(frozen=True, slots=True)
class TestResult:
    """What came of a test message."""

    __test__ = False

    delivered: bool
    channel: str
    """Kind of the channel."""
    reason: str = ""


class Notifier:
    """A sink for alert events that tells channels about them."""

    def __init__(
        self,
        channels: Sequence[Channel],
        outbox: Outbox,
        *,
        settings: DeliverySettings | None = None,
        public_url: str | None = None,
        quiet: Mapping[str, QuietHours] | None = None,
        emit: Emit | None = None,
        count: CountNotifications | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """*quiet* is by the channel's key; *emit* and *count* are called by one thread at a time."""
        self._channels = {channel.key: channel for channel in channels}
        self._outbox = outbox
        self._spare = Outbox(None)
        """In memory: for channels of this process alone, and for what the outbox cannot take, since a full disk
        is no reason to tell nobody."""
        self._in_process = {key for key, one in self._channels.items() if getattr(one, "in_process", False)}
        self._settings = settings or DeliverySettings()
        self._emit = emit
        self._count = count
        self._clock = clock
        self._boundary = ErrorBoundary(_log)
        self._deliveries = {
            key: Delivery(
                channel,
                (self._outbox, self._spare),
                settings=self._settings,
                tell=self._tell,
                clock=clock,
                boundary=self._boundary,
                public_url=public_url,
                quiet=(quiet or {}).get(key),
            )
            for key, channel in self._channels.items()
        }
        self._closed = False
        self._reset()

    def _reset(self) -> None:
        self._wake = {key: threading.Event() for key in self._channels}
        self._threads: dict[str, threading.Thread] = {}
        self._starting = threading.Lock()  # guards against two threads of one channel
        self._saving = threading.Lock()  # guards what is unsaved
        self._telling = threading.Lock()  # who hears of messages hears of one at a time
        self._unsaved: deque[Entry] = deque(maxlen=UNSAVED_ENTRIES)

    def write(self, batch: Sequence[Event]) -> None:
        """Queue the alerts of *batch* for every channel that wants them."""
        entries = [entry for event in batch for entry in self._entries(event)]
        if entries:
            with self._saving:
                self._unsaved.extend(entries)
                self._save()
            self.start()
            self._wake_all()

    def start(self) -> None:
        """Begin to deliver, also what an earlier process left behind."""
        if self._closed:
            return
        with self._starting:
            for key, delivery in self._deliveries.items():
                running = self._threads.get(key)
                if running is None or not running.is_alive():
                    name = f"windowpane-notifier-{delivery.channel.kind}"
                    thread = threading.Thread(target=self._run, args=(key, delivery), name=name, daemon=True)
                    self._threads[key] = thread
                    thread.start()

    def close(self, timeout_seconds: float = 5.0) -> None:
        """Deliver what waits, once, then stop; the rest stays in the outbox for the next process.

        *timeout_seconds* is for all channels together; one that hangs longer is left to end with the process.
        """
        if self._closed:
            return
        self._closed = True
        self._wake_all()
        deadline = time.monotonic() + timeout_seconds
        running = [thread for thread in self._threads.values() if thread is not threading.current_thread()]
        for thread in running:
            thread.join(max(0.0, deadline - time.monotonic()))
        if not any(thread.is_alive() for thread in running):
            self._outbox.close()
            self._spare.close()

    def before_fork(self) -> None:
        """Keep the outboxes still while another thread forks."""
        self._outbox.hold_still()
        self._spare.hold_still()

    def after_fork_in_parent(self) -> None:
        """Use them again."""
        self._spare.go_on()
        self._outbox.go_on()

    def after_fork(self) -> None:
        """Start over in a forked child."""
        self._reset()
        for delivery in self._deliveries.values():
            delivery.after_fork()
        self._outbox.after_fork()
        self._spare.after_fork()  # and is empty: the parent tells what it kept

    def deliver_due(self) -> int:
        """Deliver what is due now, channel by channel; returns how many messages were sent or given up."""
        return sum(delivery.due() for delivery in self._deliveries.values())

    # -- inside -----------------------------------------------------------------------------------------------

    def _save(self) -> None:
        """Move what waits to the outbox: later where another process holds it, to memory where it is broken."""
        now = self._clock()
        due_at = now + self._settings.group_seconds
        with self._boundary.contain("writing the outbox"):
            while self._unsaved:
                try:
                    self._put(list(self._unsaved), now, due_at)
                    self._unsaved.clear()
                except ValueError as error:  # one of them cannot be written at all: find it
                    self._boundary.log_failure("writing an alert", error)
                    self._save_singly(now, due_at)
                except sqlite3.Error as error:
                    if held_by_another(error):
                        raise
                    self._boundary.log_failure("writing the outbox", error)
                    self._spare.put(list(self._unsaved), now=now, due_at=due_at)
                    self._unsaved.clear()

    def _put(self, entries: list[Entry], now: float, due_at: float) -> None:
        ours = [entry for entry in entries if entry.channel in self._in_process]
        shared = [entry for entry in entries if entry.channel not in self._in_process]
        for outbox, some in ((self._spare, ours), (self._outbox, shared)):
            if some:
                outbox.put(some, now=now, due_at=due_at)

    def _save_singly(self, now: float, due_at: float) -> None:
        while self._unsaved:
            with suppress(ValueError):  # it is lost, which was logged
                self._put([self._unsaved[0]], now, due_at)
            self._unsaved.popleft()

    def _entries(self, event: Event) -> list[Entry]:
        message = message_of(event)
        if message is None:
            return []
        return [Entry(key, event) for key, channel in self._channels.items() if channel.wants(message)]

    def _wake_all(self) -> None:
        for wake in self._wake.values():
            wake.set()

    def _run(self, key: str, delivery: Delivery) -> None:
        wake = self._wake[key]
        while not self._closed:
            wake.clear()
            if self._saving.acquire(blocking=False):  # else somebody saves already, perhaps waiting for a disk
                try:
                    self._save()
                finally:
                    self._saving.release()
            delivery.due()
            wake.wait(self._pause(delivery))
        delivery.due(within_seconds=self._settings.group_seconds)

    def _pause(self, delivery: Delivery) -> float:
        """Seconds until there is something to do for a channel."""
        if self._closed:
            return 0.0
        return self._settings.retry_seconds if self._unsaved else delivery.pause()

    def _tell(self, channel: Channel, letters: Sequence[Letter], outcome: str, reason: str = "") -> None:
        """Count what happened, and make it part of the session's record."""
        with self._telling:
            for letter in letters:
                if self._count is not None:
                    self._count(channel.kind, outcome)
                if self._emit is not None and outcome != "retried":
                    self._emit([notice(letter, channel, outcome, reason, self._clock())])


def send_test(url: str, *, public_url: str | None = None, clock: Callable[[], float] = time.time) -> TestResult:
    """Send a test message to one channel, now. Raises `ConfigurationError` for a bad address."""
    channel = channel_for(url)
    message = AlertMessage(
        alert="test", severity="info", state="firing", session_id="test", agent="test", model="", turn=1,
        crossing_turn=1, at=clock(), title="Test message", summary="This is a test; nothing is wrong",
        todo="Nothing.", link=public_url,
    )  # fmt: skip
    try:
        channel.send([message])
    except DeliveryError as error:
        return TestResult(delivered=False, channel=channel.kind, reason=str(error))
    except Exception as error:  # noqa: BLE001  # its text may hold the address
        return TestResult(delivered=False, channel=channel.kind, reason=type(error).__name__)
    return TestResult(delivered=True, channel=channel.kind)
