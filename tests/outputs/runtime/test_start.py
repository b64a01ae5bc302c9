"""`start()`: one set of outputs per process, complete, idempotent and robust against missing parts."""

from __future__ import annotations

import json
import logging
import math
import os
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from windowpane.agents.managers import ContextWindowManager
from windowpane.core.events import Event, EventContext, OverflowDetected, SessionStarted, TurnStarted
from windowpane.core.limits import WindowLimits
from windowpane.core.tracking.tracker import SessionInfo, SessionTracker
from windowpane.exceptions import ConfigurationError
from windowpane.outputs.http.service_discovery import running_targets
from windowpane.outputs.runtime.current import running_outputs
from windowpane.outputs.runtime.start import Runtime, start, stop
from windowpane.store.embedded import SqliteStore
from windowpane.store.filters import EventFilter, SessionFilter
from windowpane.store.writes.spool import waiting_files

Start = Callable[..., Runtime]


def read(url: str, *, token: str | None = None) -> str:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=10) as response:
        return str(response.read().decode())


def run_session(running: Runtime, *, turns: int = 4, fill: int = 31_000, session: str = "run-1") -> None:
    """A session whose window is nearly full from the first turn on."""
    tracker = SessionTracker(
        SessionInfo(session, "reviewer", "gpt-4o", "live", f"{session}/live"),
        emit=running.emit,
        digest=running.digest,
        limits=WindowLimits.of(32_768, "given"),
        clock=lambda: 1_700_000_000.0,
    )
    tracker.start()
    tracker.add("user_message", "fill", fill)
    for _ in range(turns):
        tracker.add("assistant_response", "ok", 10)
        tracker.end_turn()
        tracker.add("user_message", "more", 20)
    tracker.flush()


def test_events_reach_store_metrics_and_alerts(start_outputs: Start) -> None:
    running = start_outputs()
    run_session(running)
    assert running.flush(20)

    assert running.store is not None
    (row,) = running.store.sessions(SessionFilter())
    assert row.turns == 4
    fired = {alert.alert for alert in running.store.alerts()}
    assert {"utilization", "output_reserve", "yellow_entered"} <= fired
    assert running.url is not None
    text = read(running.url)
    assert 'context_window_turns_total{agent="reviewer",model="gpt-4o"} 4.0' in text
    assert 'context_window_alert_transitions_total{agent="reviewer",alert="utilization"' in text
    assert "windowpane_store_write_seconds_count" in text
    assert running.store.verify().intact


def test_starting_twice_returns_the_same_outputs(start_outputs: Start) -> None:
    first = start_outputs()
    assert start_outputs(port=1) is first
    url = first.url
    assert url is not None

    stop()
    stop()

    assert running_outputs() is None
    with pytest.raises(OSError, match=r"refused|unreachable"):
        read(url)
    assert start_outputs() is not first


def test_stopping_releases_everything(start_outputs: Start) -> None:
    before = threading.active_count()
    running = start_outputs()
    run_session(running)
    path = running.config.store.path

    stop()

    assert threading.active_count() == before
    store = SqliteStore(path)
    assert store.count_events(EventFilter()) > 20
    assert list(store.endpoints()) == []
    store.close()


def test_a_free_port_replaces_a_busy_one(start_outputs: Start, caplog: pytest.LogCaptureFixture) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        busy = taken.getsockname()[1]
        running = start_outputs(port=busy)

    assert running.url is not None
    assert running.store is not None
    (endpoint,) = running.store.endpoints()
    assert endpoint.port != busy
    assert str(endpoint.port) in running.url
    assert "busy" in caplog.text
    targets = json.loads(read(running.url.replace("/metrics", "/sd")))
    assert targets[0]["targets"] == [f"127.0.0.1:{endpoint.port}"]


def test_an_endpoint_with_tls_is_discovered_with_its_scheme(
    start_outputs: Start, require_server: Callable[[str], Path], tmp_path: Path
) -> None:
    plain = start_outputs()
    assert plain.store is not None
    (listed,) = running_targets(plain.store.endpoints())
    assert "__scheme__" not in listed.labels
    stop()

    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(
        [
            require_server("openssl"), "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1",
            "-subj", "/CN=127.0.0.1", "-keyout", key, "-out", certificate,
        ],
        capture_output=True,
        check=True,
    )  # fmt: skip
    protected = start_outputs(settings={"server": {"tls": {"certificate": str(certificate), "key": str(key)}}})
    assert protected.store is not None
    (listed,) = running_targets(protected.store.endpoints())
    assert listed.labels["__scheme__"] == "https"


def test_health_reports_queue_and_store(start_outputs: Start) -> None:
    running = start_outputs(settings={"server": {"bearer_token": "s3cr3t"}})
    assert running.url is not None

    health = json.loads(read(running.url.replace("/metrics", "/healthz"), token="s3cr3t"))

    assert health["status"] == "ok"
    assert health["stores_events"] is True
    assert health["dropped_events"] == 0
    with pytest.raises(urllib.error.HTTPError, match="401"):
        read(running.url)


def test_metrics_and_alerts_work_without_a_store(
    start_outputs: Start, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broken = tmp_path / "not-a-database"
    broken.write_bytes(b"something else entirely" * 1_000)
    caplog.set_level(logging.INFO, logger="windowpane")

    running = start_outputs(store=broken, notify=["log://"])
    run_session(running)
    assert not running.flush(20)

    assert running.store is None
    assert "not stored" in caplog.text
    assert running.url is not None
    metrics = read(running.url)
    assert "context_window_turns_total{" in metrics
    assert "windowpane_store_available 0.0" in metrics
    health = json.loads(read(running.url.replace("/metrics", "/healthz")))
    assert (health["status"], health["stores_events"]) == ("degraded", False)
    assert "not a readable database" in health["store_problem"]
    stop()
    assert len(waiting_files(broken)) == 1
    assert "Window in red" in caplog.text


def test_metrics_are_not_served_to_other_machines_by_accident(start_outputs: Start) -> None:
    with pytest.raises(
        ConfigurationError, match=r"^server\.address: 0\.0\.0\.0 can be reached .*server\.insecure"
    ):
        start_outputs(address="0.0.0.0")
    with start_outputs(address="0.0.0.0", settings={"server": {"insecure": True}}) as runtime:
        assert runtime.url
    with start_outputs(address="0.0.0.0", settings={"server": {"bearer_token": "s3cret"}}) as runtime:
        assert runtime.url


def test_an_invalid_setting_raises_at_start(start_outputs: Start, tmp_path: Path) -> None:
    before = threading.active_count()
    for options, where in (
        ({"port": 70_000}, "server.port"),
        ({"notify": ["nonsense://host"]}, "notify.channels.url"),
        ({"otlp_endpoint": "not a url"}, "otlp.endpoint"),
        ({"settings": [1]}, "settings: is a list"),
        ({"config": tmp_path / "nowhere.yaml"}, "nowhere.yaml"),
        ({"settings": {"store": {"audit_key_file": tmp_path / "nowhere.key"}}}, "store.audit_key_file"),
    ):
        with pytest.raises(ConfigurationError, match=where.replace(".", r"\.")):
            start_outputs(**options)

    assert running_outputs() is None
    assert threading.active_count() == before


def test_arguments_join_settings_of_the_same_section(start_outputs: Start) -> None:
    running = start_outputs(settings={"server": {"port": 1, "bearer_token": "x"}, "session_label": 3})

    assert running.config.server.port == 0
    assert running.config.server.bearer_token is not None
    assert running.config.session_label == 3


def test_hooks_are_measured(start_outputs: Start) -> None:
    running = start_outputs()

    running.record_hook("on_turn_start", 0.0004)

    assert running.url is not None
    assert 'windowpane_hook_seconds_count{hook="on_turn_start"} 1.0' in read(running.url)


def test_a_manager_uses_the_running_outputs(start_outputs: Start, tmp_path: Path) -> None:
    running = start_outputs()
    with ContextWindowManager(
        agent="reviewer", model="gpt-4o", limit_tokens=8_192, session_id="managed", data_folder=tmp_path
    ) as window:
        window.add_user("Look at the log and say what is wrong.")
        for number in range(12):
            window.on_turn_start()
            window.on_turn_end(
                {"role": "assistant", "content": None, "tool_calls": [
                    {"id": f"c{number}", "type": "function",
                     "function": {"name": "read", "arguments": json.dumps({"part": number})}}
                ]}
            )  # fmt: skip
            window.on_tool_result("read", f"line {number} " * 300, f"c{number}")
    assert running.flush(20)

    assert running.store is not None
    row = running.store.session("managed")
    assert row is not None
    assert row.ended
    assert row.turns >= 12
    assert running.url is not None
    text = read(running.url)
    assert 'windowpane_hook_seconds_count{hook="on_turn_start"} 12.0' in text
    assert 'context_window_turns_total{agent="reviewer",model="gpt-4o"}' in text
    assert running.store.verify().intact
    fired = [alert for alert in running.store.alerts() if alert.resolved_turn is None]
    assert fired == []


def test_the_audit_explains_dropped_events(start_outputs: Start) -> None:
    running = start_outputs()
    good = EventContext("s", "agent", "m", 1, 1, "live", "s")
    times = [math.nan if n in (7, 8, 31) else 1.0 + n for n in range(41)]
    batch = [Event(good, n, at, TurnStarted()) for n, at in enumerate(times)]

    running.emit([Event(good, 0, 1.0, SessionStarted()), *batch[1:]])
    assert not running.flush(20)
    running.emit([Event(good, 41, 50.0, TurnStarted())])
    assert running.flush(20)

    assert running.store is not None
    assert running.store.count_events(EventFilter(types=("turn.started",))) == 38
    assert running.url is not None
    assert 'windowpane_dropped_events_total{reason="error",sink="store"} 3.0' in read(running.url)
    verification = running.store.verify()
    assert verification.intact, verification.broken


def test_listeners_are_called_with_events(start_outputs: Start) -> None:
    running = start_outputs()
    heard: list[tuple[str, str]] = []
    running.listen("zone.changed", lambda event: heard.append((event.type, threading.current_thread().name)))

    run_session(running)
    assert running.flush(20)

    assert heard[0] == ("zone.changed", "windowpane-pipeline")


def test_notifications_become_events(start_outputs: Start) -> None:
    running = start_outputs(notify=["log://"])
    run_session(running)
    path = running.config.store.path

    stop()

    store = SqliteStore(path)
    delivered = store.events(EventFilter(types=("notification.delivered",)))
    assert {stored.event.data.alert for stored in delivered} >= {"utilization"}  # type: ignore[union-attr]
    assert any("log" in alert.delivered for alert in store.alerts())
    assert store.verify().intact
    store.close()


def test_capture_stores_redacted_texts(start_outputs: Start) -> None:
    running = start_outputs(capture=True)
    secret = "AKIA" + "QWERTYUIOPASDFGH"
    tracker = SessionTracker(SessionInfo("s", "a", "m", "live", "s"), emit=running.emit, digest=running.digest)
    tracker.start()
    block = tracker.add("user_message", f"my key is {secret}", 9)
    tracker.flush()
    assert running.flush(20)

    assert running.store is not None
    stored = running.store.content(block.digest)
    assert stored is not None
    assert secret not in stored
    assert "redacted" in stored


def test_a_forked_child_has_separate_outputs(start_outputs: Start) -> None:
    running = start_outputs()
    run_session(running, session="parent")
    assert running.flush(20)
    parent_url = running.url

    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover  # runs in the child
        answer = {"ok": False}
        try:
            run_session(running, session="child", turns=2)
            answer["ok"] = running.flush(30)
            assert running.url is not None
            answer["turns"] = 'context_window_turns_total{agent="reviewer",model="gpt-4o"} 2.0' in read(
                running.url
            )
            answer["own_port"] = running.url != parent_url
        except Exception as error:  # noqa: BLE001  # reported to the parent
            answer["error"] = repr(error)
        os.write(writer, json.dumps(answer).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        answer = json.loads(pipe.read())
    os.waitpid(child, 0)

    assert answer == {"ok": True, "turns": True, "own_port": True}
    assert running.store is not None
    assert {row.session_id for row in running.store.sessions(SessionFilter())} == {"parent", "child"}
    assert running.store.verify().intact
    assert parent_url is not None
    assert 'model="gpt-4o"} 4.0' in read(parent_url)


def test_forks_during_emits_and_notifications(start_outputs: Start) -> None:
    running = start_outputs(notify=["log://"])
    ending = threading.Event()

    def produce(stream: str) -> None:
        context, n = EventContext(stream, "agent", "m", 1, 1, "live", stream), 0
        while not ending.wait(0.001):
            running.emit([Event(context, n + k, 1.0, TurnStarted()) for k in range(10)])
            n += 10

    threads = [threading.Thread(target=produce, args=(f"parent{i}",)) for i in range(2)]
    for thread in threads:
        thread.start()
    codes = []
    for number in range(6):
        child = os.fork()
        if child == 0:  # pragma: no cover  # runs in the child
            context = EventContext(f"child{number}", "agent", "m", 1, 1, "live", f"child{number}")
            overflow = OverflowDetected("provider", "failed", 9_000, 8_192)
            running.emit([Event(context, 0, 1.0, SessionStarted()), Event(context, 1, 2.0, overflow)])
            os._exit(0 if running.flush(30) else 3)
        codes.append(os.waitpid(child, 0)[1])
    ending.set()
    for thread in threads:
        thread.join()

    assert codes == [0] * 6
    assert running.flush(30)
    assert running.store is not None
    assert {row.session_id for row in running.store.sessions(SessionFilter())} == {
        "parent0", "parent1", *(f"child{number}" for number in range(6)),
    }  # fmt: skip
    assert running.store.verify().intact


_SCRIPT = """
import sys
from windowpane.core.events import Event, EventContext, SessionStarted
from windowpane.outputs.runtime.start import start
running = start(port=0, store=sys.argv[1], notify=[])
context = EventContext("s", "a", "m", 0, 1, "live", "s")
for n in range(500):
    running.emit([Event(context, n, 1.0, SessionStarted())])
"""


def test_events_are_stored_when_the_interpreter_exits(tmp_path: Path) -> None:
    path = tmp_path / "windowpane.db"

    finished = subprocess.run(
        [sys.executable, "-W", "error", "-c", _SCRIPT, str(path)], capture_output=True, timeout=60, check=False
    )

    assert finished.returncode == 0, finished.stderr.decode()
    assert finished.stderr == b""
    store = SqliteStore(path)
    assert store.count_events(EventFilter()) == 500
    store.close()


def test_a_missing_otlp_library_is_logged(
    start_outputs: Start, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "windowpane.outputs.otlp.metrics", None)

    running = start_outputs(otlp_endpoint="http://127.0.0.1:1")
    running.emit([Event(_context(), 0, 1.0, SessionStarted())])

    assert running.flush(20)
    assert "pushing to OpenTelemetry failed" in caplog.text


def _context() -> Any:
    return EventContext("s", "a", "m", 0, 1, "live", "s")


def test_a_managed_session_is_named_by_its_user(start_outputs: Callable[..., Runtime], tmp_path: Path) -> None:
    runtime = start_outputs()
    for session_id, names in (("a", {"title": "Review of src", "label": "pr-7"}), ("b", {})):
        with ContextWindowManager(
            agent="reviewer", model="gpt-5", task_goal="Review src", session_id=session_id,
            data_folder=tmp_path / "data", **names,
        ) as window:  # fmt: skip
            window.add_user("go")
    assert runtime.flush(20)
    assert runtime.store is not None
    named, unnamed = runtime.store.session("a"), runtime.store.session("b")

    assert named is not None
    assert unnamed is not None
    assert (named.title, named.title_source, named.label) == ("Review of src", "user", "pr-7")
    assert (unnamed.title, unnamed.folder, unnamed.branch) == ("", "", "")


def test_a_second_start_names_the_settings_that_have_no_effect(
    start_outputs: Start, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    running = start_outputs()
    assert start_outputs() is running
    assert start() is running
    assert caplog.records == []

    assert start_outputs(store=tmp_path / "secret-name.db", capture=True) is running

    [warning] = [record.getMessage() for record in caplog.records]
    assert "store.capture, store.path" in warning
    assert "secret-name" not in warning


OBSERVING = """
import sys
import openai
import windowpane

client = openai.OpenAI(api_key="x")
before = set(sys.modules)
windowpane.start(port=0, store=sys.argv[1])
windowpane.observe(client)
print(*sorted(set(sys.modules) - before))
windowpane.stop()
"""
NEEDED_LATER = {
    "ahocorasick", "click", "numpy", "rich", "tiktoken", "toktok", "yaml",
    "windowpane.cli", "windowpane.core.redaction.redactor", "windowpane.evaluation",
    "windowpane.fidelity.rules", "windowpane.fidelity.situation", "windowpane.manager",
    "windowpane.report", "windowpane.sources.imports", "windowpane.store.audit",
    "windowpane.store.writes.session_import",
}  # fmt: skip
"""Loaded by what needs it: the first text that is counted or redacted, a file of settings, an import."""


def test_an_agent_loads_only_what_it_needs(tmp_path: Path) -> None:
    store = tmp_path / "windowpane.db"
    result = subprocess.run(
        [sys.executable, "-c", OBSERVING, store], capture_output=True, encoding="utf-8", check=True, timeout=60
    )
    loaded = set(result.stdout.split())

    assert "windowpane.sources.clients.recording" in loaded
    assert loaded & NEEDED_LATER == set()
