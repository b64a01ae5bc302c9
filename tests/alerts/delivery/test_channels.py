"""Channels that are slow, hang or request a pause, and clocks that jump: only the message itself is delayed."""

from __future__ import annotations

import json
import math
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from windowpane.alerts.delivery import channels
from windowpane.alerts.delivery.channels import AlertmanagerChannel, DeliveryError, LogChannel, channel_for
from windowpane.alerts.delivery.message import AlertMessage, message_of, render
from windowpane.alerts.delivery.notifier import Notifier
from windowpane.alerts.delivery.outbox import Outbox
from windowpane.alerts.delivery.worker import DeliverySettings
from windowpane.core.events import AlertFired, Event, EventContext
from windowpane.core.quiet_hours import QuietHours
from windowpane.testing import ManualClock

START = 1_700_000_000.0
Wait = Callable[..., None]


class Service:
    """An HTTP endpoint that responds with *status*, when `go` is set."""

    def __init__(self, status: int = 200, **headers: str) -> None:
        self.status = status
        self.headers = headers
        self.go = threading.Event()
        self.go.set()
        self.arrived: list[Any] = []
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                service.arrived.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                service.go.wait(30)
                self.send_response(service.status)
                for name, value in service.headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.end_headers()

            def log_message(self, *args: object) -> None:
                """Nothing on the terminal."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        self.address = f"127.0.0.1:{self.server.server_port}"

    def close(self) -> None:
        self.go.set()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def service() -> Iterator[Service]:
    running = Service()
    yield running
    running.close()


def fired(session: str = "s1", crossing_turn: int = 3) -> Event:
    context = EventContext(session, "reviewer", "gpt-5", 3, 1, "live", f"{session}/alerts")
    return Event(context, 0, START, AlertFired("fidelity", "warning", crossing_turn, 0.5, 0.75, "Fidelity 50%"))


def message() -> AlertMessage:
    made = message_of(fired())
    assert made is not None
    return made


def test_a_message_names_what_the_alert_is_about() -> None:
    event = fired()
    made = message_of(event._replace(data=replace(event.data, subject="Read src/app.py")))

    assert made is not None
    assert "Fidelity 50%: Read src/app.py" in render([made]).body


def by_hand(channel: Any, clock: ManualClock, outbox: Outbox, **quiet: QuietHours) -> Notifier:
    """A notifier whose thread is never started: the test calls `deliver_due`."""
    settings = DeliverySettings(group_seconds=0.0, retry_seconds=5.0)
    notifier = Notifier([channel], outbox, settings=settings, clock=clock, quiet_hours=quiet)
    notifier.start = lambda: None  # type: ignore[method-assign]
    return notifier


class TestSlow:
    def test_raising_an_alert_never_waits_for_the_channel(self, service: Service, wait_until: Wait) -> None:
        service.go.clear()
        settings = DeliverySettings(group_seconds=0.0, retry_seconds=0.05, messages_per_minute=6_000)
        emitted: list[Event] = []
        notifier = Notifier(
            [channel_for(f"json://{service.address}")], Outbox(None), settings=settings, emit=emitted.extend
        )
        notifier.write([fired("s0")])
        wait_until(lambda: len(service.arrived) == 1, what="the first request")
        started = time.perf_counter()
        for number in range(1, 20):
            notifier.write([fired(f"s{number}")])
        took = time.perf_counter() - started
        assert len(service.arrived) == 1, "the channel was slow all the while"
        service.go.set()
        wait_until(lambda: len(emitted) == 20, what="every delivery")
        notifier.close()

        assert took < 1.0
        assert len(service.arrived) == 20
        assert {event.type for event in emitted} == {"notification.delivered"}

    def test_a_request_without_a_response_times_out_and_is_retried(
        self, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(channels, "SEND_SECONDS", 0.1)
        service.go.clear()
        clock, outbox = ManualClock(START), Outbox(None)
        channel = AlertmanagerChannel(f"alertmanager://{service.address}")
        notifier = by_hand(channel, clock, outbox)
        notifier.write([fired()])
        notifier.deliver_due()
        assert outbox.next_due(channel.key) is not None
        service.go.set()
        monkeypatch.setattr(channels, "SEND_SECONDS", 10.0)
        clock.advance(6)

        assert notifier.deliver_due() == 1
        assert outbox.next_due(channel.key) is None
        notifier.close()


class TestRetryAfter:
    def test_no_message_is_sent_before_the_requested_pause_is_over(self) -> None:
        """429 with Retry-After: nothing is sent before that time, then once."""
        service = Service(429, Retry_After="120")
        clock, outbox = ManualClock(START), Outbox(None)
        channel = AlertmanagerChannel(f"alertmanager://{service.address}")
        notifier = by_hand(channel, clock, outbox)
        notifier.write([fired()])
        notifier.deliver_due()
        clock.advance(119)
        notifier.deliver_due()
        early = len(service.arrived)
        service.status = 200
        clock.advance(2)
        notifier.deliver_due()
        notifier.deliver_due()
        service.close()
        notifier.close()

        assert early == 1
        assert len(service.arrived) == 2
        assert outbox.next_due(channel.key) is None

    @pytest.mark.parametrize(
        ("header", "seconds"),
        [
            ("30", 30),
            (format_datetime(datetime.fromtimestamp(START + 45, UTC), usegmt=True), 45),
            (format_datetime(datetime.fromtimestamp(START - 45, UTC), usegmt=True), 0),
            ("999999999999", 3_600),
            ("soon", 0),
            ("-5", 0),
            ("", 0),
        ],
    )
    def test_the_header_is_a_number_or_a_date(self, header: str, seconds: float) -> None:
        service = Service(429, Retry_After=header)
        channel = AlertmanagerChannel(f"alertmanager://{service.address}", clock=lambda: START)
        with pytest.raises(DeliveryError, match="answered 429") as caught:
            channel.send([message()])
        service.close()

        assert caught.value.retry_after_seconds == seconds


class FullOutbox(Outbox):
    """An outbox on a disk without room for another page, until it is resized."""

    def _open(self) -> sqlite3.Connection:
        connection = super()._open()
        connection.execute("PRAGMA journal_mode = DELETE")
        self.resize(connection, pages=0)
        return connection

    def resize(self, connection: sqlite3.Connection, *, pages: int) -> None:
        (taken,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {taken + pages}")


class TestFullDisk:
    def test_an_alert_is_delivered_though_nothing_can_be_written(
        self, service: Service, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        clock, outbox = ManualClock(START), FullOutbox(tmp_path / "outbox.db")
        notifier = by_hand(channel_for(f"json://{service.address}"), clock, outbox)
        notifier.write([fired(f"session-{number}") for number in range(40)])
        for _ in range(5):
            notifier.deliver_due()
            clock.advance(60)
        notifier.close()

        assert len(service.arrived) == 40
        assert len({body["message"] for body in service.arrived}) == 40
        assert "database or disk is full" in caplog.text

    def test_an_outbox_that_fails_is_not_retried_without_a_pause(self, tmp_path: Path) -> None:
        class Broken(Outbox):
            tries = 0

            def lease(self, *_: Any, **__: Any) -> Any:
                type(self).tries += 1
                raise sqlite3.OperationalError("disk I/O error")

        outbox = Broken(tmp_path / "outbox.db")
        notifier = by_hand(channel_for("log://"), ManualClock(START), outbox)
        notifier.write([fired()])
        notifier.deliver_due()

        assert notifier._pause(*notifier._workers.values()) == 5.0
        assert Broken.tries == 1
        notifier.close()


class TestLog:
    def test_each_process_logs_what_it_raised_itself(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level("INFO", logger="windowpane.alerts")
        clock, path = ManualClock(START), tmp_path / "store.db"
        ours, theirs = (by_hand(LogChannel(), clock, Outbox(path)) for _ in range(2))
        ours.write([fired()])
        theirs.deliver_due()
        before = caplog.text
        ours.deliver_due()
        for notifier in (ours, theirs):
            notifier.close()

        assert before == ""
        assert caplog.text.count("Fidelity 50%") == 1


class TestClocks:
    def test_a_clock_that_is_set_back_delays_nothing(self, service: Service, tmp_path: Path) -> None:
        clock, outbox = ManualClock(START), Outbox(tmp_path / "outbox.db")
        notifier = by_hand(channel_for(f"json://{service.address}"), clock, outbox)
        notifier.write([fired()])
        clock.now = START - 86_400
        notifier.write([fired(crossing_turn=9)])
        notifier.deliver_due()
        notifier.close()

        assert sum(body["message"].count("Fidelity 50%") for body in service.arrived) == 2

    def test_quiet_hours_end_by_the_new_clock(self, service: Service) -> None:
        midnight = datetime.fromtimestamp(START, UTC).astimezone().replace(hour=0, minute=30).timestamp()
        clock, outbox = ManualClock(midnight), Outbox(None)
        channel = channel_for(f"json://{service.address}")
        notifier = by_hand(channel, clock, outbox, **{channel.key: QuietHours.parse("22:00-07:00")})
        notifier.write([fired()])
        notifier.deliver_due()
        clock.now = midnight - 3_600
        notifier.deliver_due()
        asleep = len(service.arrived)
        clock.now = midnight + 7 * 3_600
        notifier.deliver_due()
        notifier.close()

        assert asleep == 0
        assert len(service.arrived) == 1


class Slow:
    """A channel that hangs until `go` is set, or accepts everything at once."""

    def __init__(self, key: str, *, hangs: bool) -> None:
        self.key = self.kind = key
        self.entered = threading.Event()
        self.go = threading.Event()
        self.sent: list[str] = []
        if not hangs:
            self.go.set()

    def accepts(self, _message: AlertMessage) -> bool:
        return True

    def send(self, messages: Sequence[AlertMessage]) -> None:
        self.entered.set()
        self.go.wait(30)
        self.sent += [message.session_id for message in messages]


AT_ONCE = DeliverySettings(group_seconds=0.0, retry_seconds=0.05, messages_per_minute=6_000)


def notifier_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("windowpane-notifier")]


@pytest.mark.parametrize("order", [0, 1], ids=["hanging first", "hanging last"])
def test_a_hanging_channel_delays_no_other(wait_until: Wait, order: int) -> None:
    hanging, quick = Slow("hanging", hangs=True), Slow("quick", hangs=False)
    pair = [hanging, quick]
    notifier = Notifier(pair[order:] + pair[:order], Outbox(None), settings=AT_ONCE)

    notifier.write([fired("s0")])
    wait_until(hanging.entered.is_set, what="the hanging channel is called")
    for number in range(1, 6):
        notifier.write([fired(f"s{number}")])
        wait_until(lambda number=number: len(quick.sent) == number + 1, what=f"message {number}")
    assert hanging.sent == []
    hanging.go.set()
    wait_until(lambda: len(hanging.sent) == 6, what="the late messages")
    notifier.close()

    assert hanging.sent == quick.sent == [f"s{number}" for number in range(6)]


def test_each_channel_has_one_thread_until_closing(wait_until: Wait) -> None:
    before = len(notifier_threads())
    channels = [Slow(f"channel-{number}", hangs=False) for number in range(3)]
    notifier = Notifier(channels, Outbox(None), settings=AT_ONCE)

    for number in range(50):
        notifier.write([fired(f"s{number}")])
    wait_until(lambda: all(len(channel.sent) == 50 for channel in channels), what="all messages")
    running = len(notifier_threads()) - before
    notifier.close()

    assert running == 3
    assert len(notifier_threads()) == before


def test_closing_waits_at_most_its_timeout_for_channels_that_hang(tmp_path: Path, wait_until: Wait) -> None:
    path = tmp_path / "outbox.db"
    channels = [Slow(f"channel-{number}", hangs=True) for number in range(3)]
    notifier = Notifier(channels, Outbox(path), settings=AT_ONCE)
    notifier.write([fired()])
    wait_until(lambda: all(channel.entered.is_set() for channel in channels), what="all channels hang")

    started = time.monotonic()
    notifier.close(timeout_seconds=0.3)
    took = time.monotonic() - started
    waiting = [channel for channel in channels if Outbox(path).next_due(channel.key) is not None]
    for channel in channels:
        channel.go.set()
    wait_until(lambda: not notifier_threads(), what="the threads end")

    assert took < 3 * 0.3 + 0.5
    assert waiting == channels


def test_outcomes_are_reported_one_at_a_time(wait_until: Wait) -> None:
    inside, overlaps, reported = threading.Lock(), [], []

    def count(channel: str, outcome: str) -> None:
        if not inside.acquire(blocking=False):
            overlaps.append(channel)
            return
        threading.Event().wait(0.001)
        reported.append((channel, outcome))
        inside.release()

    channels = [Slow(f"channel-{number}", hangs=False) for number in range(4)]
    notifier = Notifier(channels, Outbox(None), settings=AT_ONCE, count=count)
    for number in range(10):
        notifier.write([fired(f"s{number}")])
    wait_until(lambda: len(reported) + len(overlaps) == 40, what="all deliveries")
    notifier.close()

    assert overlaps == []


def test_a_redirect_is_a_failed_delivery(service: Service) -> None:
    """Following it would turn the POST into a GET that succeeds, and forward the credentials."""
    elsewhere = Service()
    try:
        service.status, service.headers = 302, {"Location": f"http://{elsewhere.address}/"}

        with pytest.raises(DeliveryError, match="302"):
            AlertmanagerChannel(f"alertmanager://user:secret@{service.address}").send([message()])
    finally:
        elsewhere.close()

    assert elsewhere.arrived == []


class TestHostileNames:
    HOSTILE = "re\u202eviewer\x1b[31m\x00\nb\ud800"

    def alert(self, at: float, session: str = HOSTILE) -> AlertMessage:
        context = EventContext(session, self.HOSTILE, self.HOSTILE, 3, 1, "live", "stream")
        data = AlertFired("utilization", "critical", 3, 0.95, 0.9, f"95% {self.HOSTILE}")
        made = message_of(Event(context, 1, at, data))
        assert made is not None
        return made

    def test_alertmanager_gets_names_without_characters_that_act(self, service: Service) -> None:
        channel = AlertmanagerChannel(f"alertmanager://{service.address}", clock=lambda: START)
        channel.send([self.alert(START), self.alert(START, "re\u202dviewer\x1b[31m\x00\nb\ud800")])
        ((first, second),) = service.arrived

        values = [*first["labels"].values(), *first["annotations"].values()]
        assert [value for value in values if not value.isprintable()] == []
        assert first["labels"]["agent"] == "re?viewer?[31m??b?"
        assert first["labels"]["session"] != second["labels"]["session"]

    def test_a_message_has_no_characters_that_act(self) -> None:
        notification = render([self.alert(START)])

        assert notification.title.isprintable()
        assert [line for line in notification.body.split("\n") if not line.isprintable()] == []

    @pytest.mark.parametrize("at", [1e12, -1e14, math.inf])
    def test_a_clock_outside_the_calendar_stops_no_delivery(self, service: Service, at: float) -> None:
        alert = self.alert(at)
        AlertmanagerChannel(f"alertmanager://{service.address}", clock=lambda: START).send([alert])
        ((sent,),) = service.arrived

        assert datetime.fromisoformat(sent["startsAt"]) <= datetime.fromisoformat(sent["endsAt"])
        assert alert.since == "since turn 3"
        assert QuietHours(0, 1_439).until(at, UTC) is None
