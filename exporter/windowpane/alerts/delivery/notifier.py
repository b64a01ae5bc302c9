"""The notifier: delivers alerts at least once, without blocking its caller and without sending twice.

The notifier is a sink. It writes alerts to the outbox, and one thread per channel delivers them: due messages of
one session are sent together, each channel has a rate limit, a failure is retried with growing pauses until the
message is too old. A channel that hangs delays only its own messages. The outcome of each message becomes an
event.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from windowpane.alerts.delivery.channels import Channel, DeliveryError, channel_for
from windowpane.alerts.delivery.message import AlertMessage, message_of
from windowpane.alerts.delivery.outbox import Outbox, OutboxEntry, QueuedAlert, is_locked, state_of
from windowpane.alerts.delivery.routes import ProjectRoutes
from windowpane.alerts.delivery.worker import ChannelWorker, DeliverySettings, FindUrl, no_url
from windowpane.core.events import (
    AlertFired,
    AlertResolved,
    Event,
    NotificationDelivered,
    NotificationFailed,
    SessionDescribed,
)
from windowpane.core.quiet_hours import QuietHours
from windowpane.core.stored_payloads import stored_payload
from windowpane.effects.error_boundary import ErrorBoundary
from windowpane.effects.worker import Poller, TimeLimit

_log = logging.getLogger("windowpane.alerts")

CountNotifications = Callable[[str, str], None]
"""Called with the kind of channel and the outcome: `delivered`, `retried` or `failed`."""
Emit = Callable[[list[Event]], None]

UNSAVED_ENTRIES: Final = 1_000
"""Maximum alerts in memory while the outbox cannot be written; the oldest are dropped."""
READ_PAYLOADS: Final = (AlertFired, AlertResolved, SessionDescribed)
"""Payloads of a message, or of the project that a session's messages are routed by."""


@dataclass(frozen=True, slots=True)
class TestResult:
    """The outcome of a test message."""

    __test__ = False

    delivered: bool
    channel: str
    """Kind of the channel."""
    reason: str = ""


class Notifier:
    """A sink that delivers alert events to channels."""

    def __init__(
        self,
        channels: Sequence[Channel],
        outbox: Outbox,
        *,
        settings: DeliverySettings | None = None,
        public_url: FindUrl = no_url,
        quiet_hours: Mapping[str, QuietHours] | None = None,
        routes: ProjectRoutes | None = None,
        emit: Emit | None = None,
        count: CountNotifications | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """*quiet_hours* are by the channel's key; *emit* and *count* are called by one thread at a time.

        *routes* select the channels by the session's project; without them each receives all alerts.
        """
        self._routes = routes
        self._channels = {channel.key: channel for channel in channels}
        self._outbox = outbox
        self._memory_outbox = Outbox(None)
        """For channels of this process alone, and for alerts that the outbox cannot store: a full disk."""
        self._in_process = {
            key for key, channel in self._channels.items() if getattr(channel, "in_process", False)
        }
        self._settings = settings or DeliverySettings()
        self._emit = emit
        self._count = count
        self._clock = clock
        self._boundary = ErrorBoundary(_log)
        self._workers = {
            key: ChannelWorker(
                channel,
                (self._outbox, self._memory_outbox),
                settings=self._settings,
                report=self._report,
                clock=clock,
                boundary=self._boundary,
                public_url=public_url,
                quiet_hours=(quiet_hours or {}).get(key),
            )
            for key, channel in self._channels.items()
        }
        self._threads = {
            key: Poller(
                f"notifier-{worker.channel.kind}", partial(self._deliver, worker),
                settle=partial(self._deliver_last, worker),
            )
            for key, worker in self._workers.items()
        }  # fmt: skip
        self._closed = False
        self._reset()

    def _reset(self) -> None:
        self._saving = threading.Lock()  # guards the unsaved entries
        self._reporting = threading.Lock()  # emit and count are called by one thread at a time
        self._unsaved: deque[OutboxEntry] = deque(maxlen=UNSAVED_ENTRIES)

    def write(self, batch: Sequence[Event]) -> None:
        """Queue the alerts of *batch* for every channel that accepts them."""
        entries: list[OutboxEntry] = []
        for event in batch:
            if isinstance(event.data, READ_PAYLOADS):  # a few of thousands
                with self._boundary.contain("reading an alert"):
                    entries += self._entries(event)
        if entries:
            with self._saving:
                self._unsaved.extend(entries)
                self._save()
            self.start()
            for thread in self._threads.values():
                thread.wake()

    def start(self) -> None:
        """Start delivery, also of alerts that an earlier process queued."""
        if self._closed:
            return
        for thread in self._threads.values():
            thread.start()

    def close(self, timeout_seconds: float = 5.0) -> None:
        """Try to deliver the pending alerts once, then stop; the rest stays in the outbox for the next process.

        *timeout_seconds* is for all channels together; the thread of one that hangs longer ends with the process.
        """
        if self._closed:
            return
        self._closed = True
        limit = TimeLimit(timeout_seconds)
        running = [thread for thread in self._threads.values() if not thread.is_own_thread]
        for thread in running:
            thread.stop(timeout_seconds)
        ended = [thread.close(limit.remaining) for thread in running]
        if all(ended):
            self._outbox.close()
            self._memory_outbox.close()

    def flush(self) -> None:
        """Return when every queued alert is in an outbox. Raises `TimeoutError` while the outbox is locked."""
        with self._saving:
            self._save()
            if self._unsaved:
                raise TimeoutError(f"{len(self._unsaved)} alerts wait: another process keeps the outbox locked")

    def release_files(self) -> None:
        """Close the outbox's file, which is being replaced; the next use opens the new one."""
        self._outbox.close()

    def before_fork(self) -> None:
        """Block the outboxes while another thread forks."""
        self._outbox.before_fork()
        self._memory_outbox.before_fork()

    def after_fork_in_parent(self) -> None:
        """Unblock the outboxes."""
        self._memory_outbox.after_fork_in_parent()
        self._outbox.after_fork_in_parent()

    def after_fork(self) -> None:
        """Reset the state in a forked child."""
        self._reset()
        for worker in self._workers.values():
            worker.after_fork()
        self._outbox.after_fork_in_child()
        self._memory_outbox.after_fork_in_child()  # and is empty: the parent delivers its alerts

    def deliver_due(self) -> int:
        """Deliver the alerts that are due now, channel by channel; return how many were sent or abandoned."""
        return sum(worker.deliver_due() for worker in self._workers.values())

    def _save(self) -> None:
        """Move unsaved alerts to the outbox: later if it is locked, to the one in memory if it is broken."""
        if not self._unsaved:
            return
        now = self._clock()
        due_at = now + self._settings.group_seconds
        with self._boundary.contain("writing the outbox"):
            while self._unsaved:
                try:
                    self._put(list(self._unsaved), now, due_at)
                    self._unsaved.clear()
                except ValueError as error:  # one of them cannot be encoded: save the others
                    self._boundary.log_failure("writing an alert", error)
                    self._save_singly(now, due_at)
                except sqlite3.Error as error:
                    if is_locked(error):
                        raise
                    self._boundary.log_failure("writing the outbox", error)
                    self._memory_outbox.put(list(self._unsaved), now=now, due_at=due_at)
                    self._unsaved.clear()

    def _put(self, entries: list[OutboxEntry], now: float, due_at: float) -> None:
        own = [entry for entry in entries if entry.channel in self._in_process]
        shared = [entry for entry in entries if entry.channel not in self._in_process]
        for outbox, group in ((self._memory_outbox, own), (self._outbox, shared)):
            if group:
                outbox.put(group, now=now, due_at=due_at)

    def _save_singly(self, now: float, due_at: float) -> None:
        while self._unsaved:
            with suppress(ValueError):  # lost, which was logged
                self._put([self._unsaved[0]], now, due_at)
            self._unsaved.popleft()

    def _entries(self, event: Event) -> list[OutboxEntry]:
        if self._routes is not None:
            self._routes.record(event)
        message = message_of(event)
        if message is None:
            return []
        wanted = self._channels.keys() if self._routes is None else self._routes.keys_of(message.session_id)
        accepting = (key for key, channel in self._channels.items() if key in wanted and channel.accepts(message))
        return [OutboxEntry(key, event) for key in accepting]

    def _deliver(self, worker: ChannelWorker) -> float:
        """Deliver the due messages of a channel, and return the seconds until there is more."""
        if self._saving.acquire(blocking=False):  # else another thread is saving
            try:
                self._save()
            finally:
                self._saving.release()
        worker.deliver_due()
        return self._pause(worker)

    def _deliver_last(self, worker: ChannelWorker, _limit: TimeLimit, _is_last: bool) -> bool:  # noqa: FBT001
        worker.deliver_due(within_seconds=self._settings.group_seconds)
        return True

    def _pause(self, worker: ChannelWorker) -> float:
        """Return the seconds until there is work for a channel."""
        if self._closed:
            return 0.0
        return self._settings.retry_seconds if self._unsaved else worker.pause()

    def _report(self, channel: Channel, alerts: Sequence[QueuedAlert], outcome: str, reason: str = "") -> None:
        """Count the outcome, and emit it as an event of the session."""
        with self._reporting:
            for alert in alerts:
                if self._count is not None:
                    self._count(channel.kind, outcome)
                if self._emit is not None and outcome != "retried":
                    self._emit([_outcome_event(alert, channel, outcome, reason, self._clock())])


def _outcome_event(alert: QueuedAlert, channel: Channel, outcome: str, reason: str, at: float) -> Event:
    """Return the event about one message; its stream is unique, so that reporting twice is the same event."""
    event = alert.event
    data = event.data
    assert isinstance(data, AlertFired | AlertResolved)
    state = state_of(event)
    stream = f"{event.context.stream_id}/{channel.key}/{data.alert}/{data.crossing_turn}/{state}"
    context = replace(event.context, stream_id=stream)
    attempts = alert.attempts + 1
    if outcome == "delivered":
        delivered = NotificationDelivered(data.alert, data.crossing_turn, channel.kind, state, attempts)
        return Event(context, 0, round(at, 6), delivered)
    failed = NotificationFailed(data.alert, data.crossing_turn, channel.kind, state, attempts, reason)
    return Event(context, 0, round(at, 6), stored_payload(failed))


def send_test(url: str, *, public_url: str | None = None) -> TestResult:
    """Send a test message to one channel. Raises `ConfigurationError` for an invalid address."""
    channel = channel_for(url)
    message = AlertMessage(
        alert="test", severity="info", state="firing", session_id="test", agent="test", model="", turn=1,
        crossing_turn=1, at=time.time(), title="Test message", summary="This is a test; nothing is wrong",
        todo="Nothing.", nature=None, link=public_url,
    )  # fmt: skip
    try:
        channel.send([message])
    except DeliveryError as error:
        return TestResult(delivered=False, channel=channel.kind, reason=str(error))
    except Exception as error:  # noqa: BLE001  # its text may hold the address
        return TestResult(delivered=False, channel=channel.kind, reason=type(error).__name__)
    return TestResult(delivered=True, channel=channel.kind)
