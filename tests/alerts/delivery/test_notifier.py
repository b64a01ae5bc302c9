"""Delivery of alerts: real HTTP endpoints on loopback, outages, restarts, grouping, limits, secrets."""

from __future__ import annotations

import json
import logging
import math
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from windowpane.alerts.delivery.channels import (
    AlertmanagerChannel,
    Channel,
    DeliveryError,
    LogChannel,
    channel_for,
)
from windowpane.alerts.delivery.message import AlertMessage, message_of, render
from windowpane.alerts.delivery.notifier import Notifier, send_test
from windowpane.alerts.delivery.outbox import Outbox
from windowpane.alerts.delivery.worker import DeliverySettings
from windowpane.core.codec import encode
from windowpane.core.events import AlertFired, AlertResolved, Event, EventContext, TurnStarted
from windowpane.core.vocabulary import Severity
from windowpane.exceptions import ConfigurationError

Wait = Callable[..., None]
FAST = DeliverySettings(group_seconds=0.0, retry_seconds=0.05, messages_per_minute=6_000)
SUMMARY = "Utilization 93% (119k of 128k tokens), at or above 90% for 3 turns"


class Endpoint:
    """An HTTP server that answers with the given statuses in turn, then 200, and keeps what it accepted."""

    def __init__(self, *, port: int = 0, statuses: Sequence[int] = ()) -> None:
        self.statuses = list(statuses)
        self.requests: list[tuple[str, Any]] = []
        self.accepted: list[Any] = []
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                endpoint.requests.append((self.path, body))
                status = endpoint.statuses.pop(0) if endpoint.statuses else 200
                if status == 200:
                    endpoint.accepted.append(body)
                self.send_response(status)
                self.end_headers()

            def log_message(self, *args: object) -> None:
                """Nothing on the terminal."""

        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server.server_port}"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(10)


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    running = Endpoint()
    yield running
    running.close()


class Memory:
    """A channel that remembers, and fails a given number of times."""

    kind = "memory"
    key = "memory:1"

    def __init__(self, *, failures: int = 0) -> None:
        self.failures = failures
        self.sent: list[list[AlertMessage]] = []
        self.attempts = 0

    def accepts(self, message: AlertMessage) -> bool:
        return True

    def send(self, messages: Sequence[AlertMessage]) -> None:
        self.attempts += 1
        if self.failures:
            self.failures -= 1
            raise DeliveryError("out of order")
        self.sent.append(list(messages))


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


class Notices:
    """Collects the events and counts a notifier makes."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.counts: dict[tuple[str, str], int] = {}

    def emit(self, batch: list[Event]) -> None:
        self.events += batch

    def count(self, channel: str, outcome: str) -> None:
        self.counts[channel, outcome] = self.counts.get((channel, outcome), 0) + 1


def context(session: str = "s1", agent: str = "reviewer") -> EventContext:
    return EventContext(session, agent, "gpt-5", 12, 1, "live", f"{session}/alerts")


def fired(
    alert: str = "utilization", *, severity: Severity = "critical", session: str = "s1", crossing_turn: int = 10
) -> Event:
    return Event(
        context(session), 0, 1_700_000_000.0, AlertFired(alert, severity, crossing_turn, 0.93, 0.9, SUMMARY)
    )


def resolved(
    alert: str = "utilization", *, severity: Severity = "critical", session: str = "s1", crossing_turn: int = 10
) -> Event:
    data = AlertResolved(alert, severity, crossing_turn, 0.5, 0.9, 12)
    return Event(context(session), 1, 1_700_000_100.0, data)


def by_hand(
    channel: Channel, clock: Clock, *, notices: Notices | None = None, path: Path | None = None, **settings: Any
) -> Notifier:
    """A notifier whose thread is never started: the test calls `deliver_due`."""
    notices = notices or Notices()
    notifier = Notifier(
        [channel], Outbox(path), settings=DeliverySettings(**settings), clock=clock,
        emit=notices.emit, count=notices.count, public_url=lambda: "https://panes.example/",
    )  # fmt: skip
    notifier.start = lambda: None  # type: ignore[method-assign]
    return notifier


# -- messages -------------------------------------------------------------------------------------------------


def test_a_message_has_alert_session_value_start_and_first_step() -> None:
    message = message_of(fired(), public_url="https://panes.example/")
    assert message is not None

    text = render([message])

    assert text.title == "[critical] Window in red: reviewer"
    assert text.body.split("\n") == [
        f"Degradation: {SUMMARY}, since turn 10 (2023-11-14 22:13:20 UTC)",
        "What to do: Compact now, or give the agent a larger window.",
        "Agent reviewer, session s1, turn 12, model gpt-5",
        "https://panes.example/session?session=s1&alert=utilization%3A10&at=1700000000.0",
    ]


def test_untrusted_names_stay_on_one_line() -> None:
    hostile = fired()._replace(context=context("a b/&\n", "x\r\nSubject: y" + "z" * 500))
    message = message_of(hostile, public_url="https://panes.example")
    assert message is not None

    text = render([message])

    assert "\n" not in text.title
    assert len(text.title) < 200
    assert "session?session=a%20b%2F%26%0A&alert=" in text.body


def test_other_events_make_no_message() -> None:
    assert message_of(Event(context(), 0, None, TurnStarted())) is None


# -- over HTTP -------------------------------------------------------------------------------------------------


def run_notifier(url: str, path: Path | None, notices: Notices) -> Notifier:
    return Notifier([channel_for(url)], Outbox(path), settings=FAST, emit=notices.emit, count=notices.count)


def test_apprise_delivers_to_a_real_endpoint(endpoint: Endpoint, wait_until: Wait) -> None:
    notices = Notices()
    notifier = run_notifier(f"json://{endpoint.address}/hook", None, notices)

    notifier.write([fired()])
    wait_until(lambda: bool(notices.events), what="delivery")
    notifier.close()

    (body,) = endpoint.accepted
    assert body["title"] == "[critical] Window in red: reviewer"
    assert body["type"] == "failure"
    assert notices.counts == {("json", "delivered"): 1}
    assert notices.events[0].type == "notification.delivered"
    assert encode(notices.events[0])


@pytest.mark.parametrize("statuses", [[500], [429, 503], [500, 500, 500]])
def test_a_refused_message_is_tried_again_and_delivered_once(
    endpoint: Endpoint, wait_until: Wait, statuses: list[int]
) -> None:
    endpoint.statuses = list(statuses)
    notices = Notices()
    notifier = run_notifier(f"json://{endpoint.address}", None, notices)

    notifier.write([fired()])
    notifier.write([fired()])
    wait_until(lambda: bool(notices.events), what="delivery")
    notifier.close()

    assert len(endpoint.accepted) == 1
    assert len(endpoint.requests) == len(statuses) + 1
    assert notices.counts == {("json", "retried"): len(statuses), ("json", "delivered"): 1}


def test_a_service_that_comes_back_gets_the_message(free_port: Callable[[], int], wait_until: Wait) -> None:
    port, notices = free_port(), Notices()
    notifier = run_notifier(f"json://127.0.0.1:{port}", None, notices)
    notifier.write([fired()])
    wait_until(lambda: notices.counts.get(("json", "retried"), 0) >= 1, what="a first failure")

    late = Endpoint(port=port)
    wait_until(lambda: bool(notices.events), what="delivery")
    notifier.close()
    late.close()

    assert len(late.accepted) == 1


_FIRE_AND_DIE = """
import sys
from pathlib import Path
from windowpane.alerts.delivery.channels import channel_for
from windowpane.alerts.delivery.worker import DeliverySettings
from windowpane.alerts.delivery.notifier import Notifier
from windowpane.alerts.delivery.outbox import Outbox
from windowpane.core.events import AlertFired, Event, EventContext
context = EventContext("s1", "agent", "m", 3, 1, "live", "s1/alerts")
notifier = Notifier([channel_for(sys.argv[1])], Outbox(Path(sys.argv[2])),
                    settings=DeliverySettings(group_seconds=0.0, retry_seconds=3600.0))
notifier.write([Event(context, 0, 1.0, AlertFired("fidelity", "warning", 3, 0.5, 0.75, "Fidelity 50%"))])
print("fired", flush=True)
sys.stdin.read()
"""


def test_a_killed_process_s_alert_is_delivered_by_the_next(
    tmp_path: Path, free_port: Callable[[], int], wait_until: Wait
) -> None:
    port, path = free_port(), tmp_path / "store.db"
    url = f"json://127.0.0.1:{port}"
    process = subprocess.Popen(
        [sys.executable, "-c", _FIRE_AND_DIE, url, str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stdout.readline() == b"fired\n"
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    process.stdout.close()
    process.stdin.close()

    receiver, clock = Endpoint(port=port), Clock()
    clock.now = 4_000_000_000.0
    notices = Notices()
    for _ in range(2):
        notifier = by_hand(channel_for(url), clock, notices=notices, path=path, age_maximum_seconds=1e12)
        notifier.deliver_due()
        notifier.close()
    receiver.close()

    assert len(receiver.accepted) == 1
    assert notices.counts == {("json", "delivered"): 1}


def test_a_test_message_can_be_sent(endpoint: Endpoint, free_port: Callable[[], int]) -> None:
    good = send_test(f"json://{endpoint.address}")
    bad = send_test(f"json://127.0.0.1:{free_port()}/token")

    assert good.delivered
    assert "test" in endpoint.accepted[0]["title"].lower()
    assert not bad.delivered
    assert "token" not in bad.reason


def test_alertmanager_gets_start_and_end(endpoint: Endpoint) -> None:
    channel = AlertmanagerChannel(f"alertmanager://{endpoint.address}")
    firing = message_of(fired(), public_url="https://panes.example")
    over = message_of(resolved())
    assert firing is not None
    assert over is not None

    channel.send([firing])
    channel.send([over])

    (path, (first,)), (_, (second,)) = endpoint.requests
    assert path == "/api/v2/alerts"
    assert first["labels"] == second["labels"] == {
        "alertname": "utilization", "severity": "critical", "agent": "reviewer", "session": "s1",
    }  # fmt: skip
    assert first["startsAt"] < first["endsAt"]
    assert second["endsAt"] == "2023-11-14T22:15:00.000+00:00"
    assert first["generatorURL"].startswith("https://panes.example")


def test_alertmanager_s_refusal_is_a_failed_delivery(endpoint: Endpoint) -> None:
    endpoint.statuses = [400]
    message = message_of(fired())
    assert message is not None

    with pytest.raises(DeliveryError, match="answered 400"):
        AlertmanagerChannel(f"alertmanager://user:secret@{endpoint.address}").send([message])
    with pytest.raises(DeliveryError, match="cannot be reached"):
        AlertmanagerChannel("alertmanager://127.0.0.1:1").send([message])


# -- secrets ---------------------------------------------------------------------------------------------------


def test_addresses_are_never_logged(
    endpoint: Endpoint, free_port: Callable[[], int], caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    caplog.set_level(logging.DEBUG)
    for address in (endpoint.address, f"127.0.0.1:{free_port()}"):
        url = f"json://user:hunter2@{address}/s3cr3t"
        notifier = by_hand(channel_for(url), Clock(), path=tmp_path / "outbox.db", group_seconds=0)
        notifier.write([fired()])
        notifier.deliver_due()
        notifier.close()

    stored = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert "trying again" in caplog.text
    assert len(endpoint.accepted) == 1
    for secret in ("hunter2", "s3cr3t"):
        assert secret not in caplog.text
        assert secret.encode() not in stored


@pytest.mark.parametrize("url", ["nonsense://s3cr3t@host", "no address s3cr3t", "", "alertmanager:///s3cr3t"])
def test_a_bad_address_is_refused_without_repeating_it(url: str) -> None:
    """The error names what would be accepted, not what was given."""
    with pytest.raises(ConfigurationError) as caught:
        channel_for(url)

    assert "s3cr3t" not in str(caught.value)


def test_other_apprise_logging_stays() -> None:
    with pytest.raises(ConfigurationError):
        channel_for("nonsense://host")
    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = records.append  # type: ignore[method-assign]
    logger = logging.getLogger("apprise")
    logger.addHandler(handler)
    try:
        logger.warning("of the program")
    finally:
        logger.removeHandler(handler)

    assert len(records) == 1


# -- grouping, limits, age -------------------------------------------------------------------------------------


def test_alerts_of_one_session_go_together() -> None:
    channel, clock = Memory(), Clock()
    notifier = by_hand(channel, clock, group_seconds=2.0)

    notifier.write([fired(), fired("compaction_soon", severity="warning"), fired(session="s2")])
    assert notifier.deliver_due() == 0
    clock.now += 1
    notifier.write([fired("overflow")])
    clock.now += 1
    notifier.deliver_due()

    assert [[message.alert for message in sent] for sent in channel.sent] == [
        ["utilization", "compaction_soon", "overflow"],
        ["utilization"],
    ]
    assert render(channel.sent[0]).title == "[critical] Window in red and 2 more: reviewer"


def test_a_channel_is_not_flooded() -> None:
    channel, clock = Memory(), Clock()
    notifier = by_hand(channel, clock, group_seconds=0, messages_per_minute=5)

    notifier.write([fired(session=f"s{i}") for i in range(12)])
    notifier.deliver_due()
    assert len(channel.sent) == 5

    for _ in range(20):
        clock.now += 12
        notifier.deliver_due()

    assert len(channel.sent) == 12


def test_pauses_grow_and_old_messages_are_given_up() -> None:
    channel, clock, notices = Memory(failures=1_000), Clock(), Notices()
    notifier = by_hand(
        channel, clock, notices=notices, group_seconds=0, retry_seconds=10, retry_maximum_seconds=100,
        age_maximum_seconds=400,
    )  # fmt: skip
    notifier.write([fired()])
    tried: list[float] = []
    for _ in range(1_000):
        before = channel.attempts
        notifier.deliver_due()
        if channel.attempts > before:
            tried.append(clock.now - 1_700_000_000)
        clock.now += 1

    assert tried == [0, 10, 30, 70, 150, 250, 350, 450]
    assert notices.counts == {("memory", "retried"): 7, ("memory", "failed"): 1}
    assert [event.type for event in notices.events] == ["notification.failed"]
    assert notices.events[0].data.reason == "out of order"  # type: ignore[union-attr]


def test_severity_routes(tmp_path: Path) -> None:
    quiet, all_ = channel_for("json://127.0.0.1:1", min_severity="critical"), LogChannel()
    info, warning, critical = (
        message_of(fired(severity=severity))
        for severity in ("info", "warning", "critical")  # type: ignore[arg-type]
    )
    over = message_of(resolved(severity="info"))
    assert info is not None and warning is not None and critical is not None and over is not None  # noqa: PT018

    assert [quiet.accepts(message) for message in (info, warning, critical)] == [False, False, True]
    assert all(all_.accepts(message) for message in (info, warning, critical, over))
    assert not channel_for("json://127.0.0.1:1", min_severity="info").accepts(over)


def test_the_log_channel_writes_one_line(caplog: pytest.LogCaptureFixture) -> None:
    """The log gets the whole message on one line, as a warning."""
    message = message_of(fired())
    assert message is not None

    LogChannel().send([message])

    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "since turn 10" in record.message
    assert "\n" not in record.message


def test_a_channel_s_own_fault_does_not_stop_the_others() -> None:
    class Faulty(Memory):
        key = "memory:2"

        def send(self, messages: Sequence[AlertMessage]) -> None:
            raise ZeroDivisionError

    good, clock = Memory(), Clock()
    notifier = Notifier([Faulty(), good], Outbox(None), settings=DeliverySettings(group_seconds=0), clock=clock)
    notifier.start = lambda: None  # type: ignore[method-assign]
    notifier.write([fired()])

    notifier.deliver_due()

    assert len(good.sent) == 1


def test_two_processes_do_not_send_the_same(tmp_path: Path) -> None:
    path, clock = tmp_path / "outbox.db", Clock()
    first, second = Outbox(path), Outbox(path)
    notifier = by_hand(Memory(), clock, path=path, group_seconds=0)
    notifier.write([fired()])

    def lease(outbox: Outbox) -> int:
        return len(outbox.lease("memory:1", now=clock.now, due_by=clock.now, until=clock.now + 60))

    taken = [lease(first), lease(second)]
    clock.now += 61

    assert taken == [1, 0]
    assert lease(second) == 1
    for outbox in (first, second):
        outbox.close()
    notifier.close()


def test_the_outbox_is_bounded_and_private(tmp_path: Path) -> None:
    path = tmp_path / "outbox.db"
    outbox = Outbox(path, capacity=10)
    channel, clock = Memory(), Clock()
    notifier = Notifier([channel], outbox, clock=clock)
    notifier.start = lambda: None  # type: ignore[method-assign]

    for i in range(50):
        notifier.write([fired(session=f"s{i}")])

    with closing(sqlite3.connect(path)) as reader:
        assert reader.execute("SELECT count(*) FROM notification_outbox").fetchone() == (10,)
    assert path.stat().st_mode & 0o777 == 0o600
    notifier.close()


def test_an_outbox_that_is_locked_delays_but_does_not_lose(tmp_path: Path) -> None:
    path, clock, channel = tmp_path / "store.db", Clock(), Memory()
    outbox = Outbox(path, busy_seconds=0.01)
    notifier = Notifier([channel], outbox, settings=DeliverySettings(group_seconds=0), clock=clock)
    notifier.start = lambda: None  # type: ignore[method-assign]
    notifier.write([fired(session="s1")])
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        notifier.write([fired(session="s2")])
        other.execute("COMMIT")

    notifier.write([fired(session="s3")])
    notifier.deliver_due()

    assert [sent[0].session_id for sent in channel.sent] == ["s1", "s2", "s3"]
    notifier.close()


def test_an_alert_that_cannot_be_written_holds_up_no_other() -> None:
    channel, clock = Memory(), Clock()
    notifier = by_hand(channel, clock, group_seconds=0)
    broken = fired()._replace(at=math.nan)

    notifier.write([fired(session="s2"), broken, fired(session="s3")])
    notifier.write([fired(session="s4")])
    notifier.deliver_due()

    assert [sent[0].session_id for sent in channel.sent] == ["s2", "s3", "s4"]


def test_an_alert_of_a_session_whose_id_is_invalid_text_is_delivered() -> None:
    channel = Memory()
    notifier = by_hand(channel, Clock(), group_seconds=0)

    notifier.write([fired(session="half \ud800")])
    notifier.deliver_due()

    assert [len(sent) for sent in channel.sent] == [1]


@pytest.mark.server
def test_a_real_alertmanager_holds_and_ends_the_alert(
    tmp_path: Path,
    require_server: Callable[[str], Path],
    run_server: Callable[..., Any],
    free_port: Callable[[], int],
    wait_until: Wait,
) -> None:
    program, port = require_server("prometheus-alertmanager"), free_port()
    config = tmp_path / "alertmanager.yml"
    config.write_text("route: {receiver: nobody}\nreceivers: [{name: nobody}]\n")
    address = f"127.0.0.1:{port}"

    def request(path: str) -> Any:
        try:
            with urllib.request.urlopen(f"http://{address}{path}", timeout=5) as response:
                return response.read()
        except OSError:
            return None

    def active() -> list[str]:
        return [
            alert["labels"]["alertname"] for alert in json.loads(request("/api/v2/alerts?active=true") or "[]")
        ]

    run_server(
        [program, f"--config.file={config}", f"--storage.path={tmp_path / 'data'}",
         f"--web.listen-address={address}", "--cluster.listen-address="],
        ready=lambda: request("/-/ready") is not None,
    )  # fmt: skip
    channel, now = AlertmanagerChannel(f"alertmanager://{address}"), time.time()
    firing, over = (message_of(event._replace(at=now - ago)) for event, ago in ((fired(), 60), (resolved(), 1)))
    assert firing is not None
    assert over is not None

    channel.send([firing])
    wait_until(lambda: active() == ["utilization"], what="an active alert")
    channel.send([over])

    wait_until(lambda: active() == [], what="its end")


def test_close_delivers_what_waits_for_company() -> None:
    channel = Memory()
    before = threading.active_count()
    notifier = Notifier([channel], Outbox(None), settings=DeliverySettings(group_seconds=30.0))
    notifier.write([fired()])

    notifier.close(10)

    assert len(channel.sent) == 1
    assert threading.active_count() == before
