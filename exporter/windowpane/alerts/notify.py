"""Delivers alerts: at least once, without waiting for anybody, and without telling twice.

The notifier is a sink. It writes alerts to the outbox and a background thread delivers them: due messages of one
session go together, each channel has a rate limit, a failure is tried again with growing pauses until the message
is too old. What happened to each message becomes an event.
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

from windowpane.alerts.channels import Channel, DeliveryError, channel_for
from windowpane.alerts.message import AlertMessage, message_of
from windowpane.alerts.notices import notice
from windowpane.alerts.outbox import Entry, Letter, Outbox, held_by_another
from windowpane.alerts.quiet import QuietHours
from windowpane.alerts.rate_limit import RateLimit
from windowpane.boundary import Boundary
from windowpane.events import Event

_log = logging.getLogger("windowpane.alerts")

CountNotifications = Callable[[str, str], None]
"""Kind of channel, and outcome: `delivered`, `retried` or `failed`."""
Emit = Callable[[list[Event]], None]

UNSAVED_ENTRIES: Final = 1_000
"""Messages kept in memory while the outbox cannot be written; the oldest go first."""
IDLE_SECONDS: Final = 30.0
"""Look for what other processes left behind at least this often."""


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
        self._channels = {channel.key: channel for channel in channels}
        self._outbox = outbox
        self._spare = Outbox(None)
        """In memory: for channels of this process alone, and for what the outbox cannot take, since a full disk
        is no reason to tell nobody."""
        self._in_process = {key for key, one in self._channels.items() if getattr(one, "in_process", False)}
        self._settings = settings or DeliverySettings()
        self._public_url = public_url
        self._quiet = dict(quiet or {})
        """By the channel's key: hours in which it hears of critical alerts only."""
        self._emit = emit
        self._count = count
        self._clock = clock
        self._boundary = Boundary(_log)
        self._limits = {key: RateLimit(self._settings.messages_a_minute) for key in self._channels}
        self._closed = False
        self._reset()

    def _reset(self) -> None:
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()  # guards against two threads
        self._saving = threading.Lock()  # guards what is unsaved
        self._unsaved: deque[Entry] = deque(maxlen=UNSAVED_ENTRIES)
        self._troubled = False

    def write(self, batch: Sequence[Event]) -> None:
        """Queue the alerts of *batch* for every channel that wants them."""
        entries = [entry for event in batch for entry in self._entries(event)]
        if entries:
            with self._saving:
                self._unsaved.extend(entries)
                self._save()
            self.start()
            self._wake.set()

    def start(self) -> None:
        """Begin to deliver, also what an earlier process left behind."""
        if not self._channels or self._closed:
            return
        with self._starting:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="windowpane-notifier", daemon=True)
                self._thread.start()

    def close(self, timeout_seconds: float = 5.0) -> None:
        """Deliver what waits, once, then stop; the rest stays in the outbox for the next process."""
        if self._closed:
            return
        self._closed = True
        self._wake.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout_seconds)
        if thread is None or not thread.is_alive():
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
        self._outbox.after_fork()
        self._spare.after_fork()  # and is empty: the parent tells what it kept

    def deliver_due(self, *, within_seconds: float = 0.0) -> int:
        """Deliver what is due now, or within some seconds; returns how many messages were sent or given up."""
        handled = 0
        self._troubled = False
        for outbox in (self._outbox, self._spare):
            with self._boundary.contain("delivering alerts", failed=self._trouble):
                for key, channel in self._channels.items():
                    due_by = self._clock() + within_seconds
                    while letters := self._lease(outbox, key, due_by):
                        handled += self._deliver(outbox, channel, letters)
        return handled

    def _trouble(self) -> None:
        self._troubled = True

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
                    self._boundary.caught("writing an alert", error)
                    self._save_singly(now, due_at)
                except sqlite3.Error as error:
                    if held_by_another(error):
                        raise
                    self._boundary.caught("writing the outbox", error)
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

    def _run(self) -> None:
        while not self._closed:
            self._wake.clear()
            with self._saving:
                self._save()
            self.deliver_due()
            self._wake.wait(self._pause())
        self.deliver_due(within_seconds=self._settings.group_seconds)

    def _pause(self) -> float:
        """Seconds until something is due."""
        if self._closed:
            return 0.0
        if self._unsaved or self._troubled:
            return self._settings.retry_seconds
        due: list[float] = []
        for outbox in (self._outbox, self._spare):
            with self._boundary.contain("reading the outbox"):
                due += [at for at in (outbox.next_due(tuple(self._channels)),) if at is not None]
        return min(max(min(due) - self._clock(), 0.01), IDLE_SECONDS) if due else IDLE_SECONDS

    def _lease(self, outbox: Outbox, key: str, due_by: float) -> list[Letter]:
        leased_until = self._clock() + self._settings.lease_seconds
        return outbox.lease(key, now=self._clock(), due_by=due_by, until=leased_until)

    def _deliver(self, outbox: Outbox, channel: Channel, letters: list[Letter]) -> int:
        now = self._clock()
        letters = self._awake(outbox, channel, letters, now)
        if not letters:
            return 0
        wait = self._limits[channel.key].take(now)
        if wait > 0:
            outbox.hold(letters, due_at=now + wait)
            return 0
        messages = [message for letter in letters if (message := self._message(letter)) is not None]
        try:
            channel.send(messages)
        except DeliveryError as error:
            return self._failed(outbox, channel, letters, str(error), at_least=error.retry_after_seconds)
        except Exception as error:  # noqa: BLE001  # a channel's own fault is a failed delivery too
            return self._failed(outbox, channel, letters, type(error).__name__)
        outbox.done(letters, now=self._clock())
        self._tell(channel, letters, "delivered")
        return len(letters)

    def _awake(self, outbox: Outbox, channel: Channel, letters: list[Letter], now: float) -> list[Letter]:
        """The letters that may be sent now; the others wait for the end of the channel's quiet hours."""
        quiet = self._quiet.get(channel.key)
        until = None if quiet is None else quiet.until(now)
        if until is None:
            return letters
        urgent = [letter for letter in letters if getattr(letter.event.data, "severity", None) == "critical"]
        waiting = [letter for letter in letters if letter not in urgent]
        if waiting:
            outbox.hold(waiting, due_at=until)
        return urgent

    def _message(self, letter: Letter) -> AlertMessage | None:
        return message_of(letter.event, public_url=self._public_url)

    def _failed(
        self, outbox: Outbox, channel: Channel, letters: list[Letter], reason: str, *, at_least: float = 0.0
    ) -> int:
        """Try again later, not before *at_least* seconds; give up what is too old."""
        now = self._clock()
        settings = self._settings
        old = [letter for letter in letters if now - letter.queued_at >= settings.age_maximum_seconds]
        young = [letter for letter in letters if letter not in old]
        if young:
            attempts = min(letter.attempts for letter in young)
            pause = min(settings.retry_seconds * 2 ** min(attempts, 20), settings.retry_maximum_seconds)
            outbox.postpone(young, due_at=now + max(pause, at_least))
            self._tell(channel, young, "retried")
            self._boundary.say(f"retry {channel.key}", "an alert was not delivered: %s; trying again", reason)
        if old:
            outbox.done(old, now=now)
            self._tell(channel, old, "failed", reason)
        return len(old)

    def _tell(self, channel: Channel, letters: Sequence[Letter], outcome: str, reason: str = "") -> None:
        """Count what happened, and make it part of the session's record."""
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
    return TestResult(delivered=True, channel=channel.kind)
