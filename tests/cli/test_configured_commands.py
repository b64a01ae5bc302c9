"""The configuration applies to recordings and to every command, as it does to running agents."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from windowpane.alerts.rules import configured
from windowpane.cli import main
from windowpane.cli.demonstration import load
from windowpane.config.loading import load_config
from windowpane.core.events import AlertFired
from windowpane.sources.imports.pipeline import playback_settings
from windowpane.sources.imports.watch import Watcher
from windowpane.store.embedded import SqliteStore
from windowpane.store.filters import EventFilter

LIMIT = 20_000
SESSION = "0a1b2c3d-0000-4000-8000-000000000002"
Configure = Callable[[dict[str, Any]], Path]
LOUD = {"health_monitoring": {"alerts": {"enable": ["rot_threshold"], "thresholds": {"rot_threshold": 1_000}}}}
QUIET = {"health_monitoring": {"alerts": {"disable": ["utilization", "red_imminent"]}}}


@pytest.fixture
def configure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Configure:
    """Write a configuration file and name it in the environment; its store is the test's own."""
    monkeypatch.delenv("WINDOWPANE_STORE", raising=False)

    def write(document: dict[str, Any]) -> Path:
        file = tmp_path / "windowpane.yaml"
        store = {"path": str(tmp_path / "own" / "windowpane.db"), **document.get("store", {})}
        file.write_text(yaml.safe_dump({**document, "store": store}), encoding="utf-8")
        monkeypatch.setenv("WINDOWPANE_CONFIG", str(file))
        return Path(store["path"])

    return write


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    """A transcript of Claude Code whose window fills to 95% in steps of 5%."""
    folder = tmp_path / "projects"
    folder.mkdir()
    path = folder / f"{SESSION}.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for number in range(1, 20):
            for row in call(number, tokens=LIMIT * number // 20):
                file.write(json.dumps(row) + "\n")
    return path


def call(number: int, *, tokens: int) -> list[dict[str, Any]]:
    common = {"sessionId": SESSION, "parentUuid": None, "timestamp": f"2026-01-01T10:{number:02}:00Z"}
    question = {"role": "user", "content": f"question {number}"}
    reply = {
        "role": "assistant", "id": f"m{number}", "model": "claude-of-tests",
        "usage": {"input_tokens": tokens, "output_tokens": 9},
        "content": [{"type": "text", "text": f"answer {number}"}],
    }  # fmt: skip
    return [
        {"type": "user", "uuid": f"u{number}", "message": question, **common},
        {"type": "assistant", "uuid": f"a{number}", "message": reply, **common},
    ]


def run(*arguments: str | Path, code: int = 0) -> Result:
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


def fired(path: Path) -> set[str]:
    with closing(SqliteStore(path)) as store:
        return alerts_in(store)


def alerts_in(store: SqliteStore) -> set[str]:
    fired = store.events(EventFilter(types=("alert.fired",), limit=10_000))
    return {one.event.data.alert for one in fired if isinstance(one.event.data, AlertFired)}


def test_imports_are_judged_by_the_configured_rules(configure: Configure, transcript: Path) -> None:
    store = configure(LOUD)
    run("import", transcript, "--limit", str(LIMIT))
    loud = fired(store)
    store.unlink()
    configure(QUIET)
    run("import", transcript, "--limit", str(LIMIT))

    assert {"utilization", "rot_threshold"} <= loud
    assert not fired(store) & {"utilization", "red_imminent", "rot_threshold"}


def test_zones_of_recordings_are_the_configured_ones(configure: Configure, transcript: Path) -> None:
    store = configure({"pressure": {"thresholds": {"yellow": 0.1, "orange": 0.2, "red": 0.3}}})
    run("import", transcript, "--limit", str(LIMIT))
    with closing(SqliteStore(store)) as opened:
        zone_events = opened.events(EventFilter(types=("zone.changed",), limit=100))
    changes = [(one.event.context.turn, one.event.data.to_zone) for one in zone_events]  # type: ignore[union-attr]

    assert [zone for _, zone in changes[:3]] == ["yellow", "orange", "red"]
    assert changes[2][0] <= 7, "30% of the window is used in the sixth call"


@pytest.mark.parametrize("document", [LOUD, QUIET], ids=["loud", "quiet"])
def test_watching_judges_as_importing_does(
    configure: Configure, transcript: Path, tmp_path: Path, document: dict[str, Any]
) -> None:
    imported = configure(document)
    run("import", transcript, "--limit", str(LIMIT))
    once = tmp_path / "once.db"
    run("watch", transcript.parent, "--once", "--limit", str(LIMIT), "--since", "1e9", "--store", once)
    config = load_config()
    now = transcript.stat().st_mtime + 1
    with closing(SqliteStore(tmp_path / "followed.db")) as store:
        watcher = Watcher(
            [transcript.parent], store,
            playback=playback_settings(store.digester(), limit_tokens=LIMIT, config=config), since_seconds=3_600,
            rules=configured(**config.alert_settings()), clock=lambda: now,
        )  # fmt: skip
        watcher.poll()
        followed = alerts_in(store)

    assert fired(once) == fired(imported)
    assert followed == fired(imported)
    assert ("utilization" in followed) == (document is LOUD)


def test_the_demo_is_judged_by_the_configured_rules(configure: Configure, tmp_path: Path) -> None:
    configure({"health_monitoring": {"alerts": {"disable": ["utilization", "yellow_entered"]}}})
    with closing(SqliteStore(tmp_path / "demo.db")) as store:
        load(store, now=1_790_000_000.0, progress=lambda _what: None, config=load_config())
        names = alerts_in(store)

    assert names
    assert not names & {"utilization", "yellow_entered"}


def test_commands_use_the_configured_store_and_key(
    configure: Configure, transcript: Path, tmp_path: Path
) -> None:
    key = tmp_path / "key"
    key.write_text("a key of thirty-two characters..")
    store = configure({"store": {"audit_key_file": str(key)}})
    run("import", transcript, "--limit", str(LIMIT))

    assert store.exists()
    assert SESSION in run("sessions", "--json").stdout
    verified = run("audit", "verify").output
    assert "keyed: detects tampering" in verified
    assert "without the key" not in verified
    key.write_text("another key of as many letters..")
    assert "BROKEN" in run("audit", "verify", code=1).output


def test_events_from_before_the_key_are_reported_until_they_are_accepted(
    configure: Configure, transcript: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    configure({})
    run("import", transcript, "--limit", str(LIMIT))
    assert "chain intact" in run("audit", "verify").output
    assert "never accepted" in run("audit", "verify", "--expect-key", code=1).output
    key = tmp_path / "key"
    key.write_text("a key of thirty-two characters..")
    configure({"store": {"audit_key_file": str(key)}})

    run("import", transcript, "--limit", str(LIMIT))
    assert caplog.text.count("recorded without an audit key") == 1
    assert run("audit", "verify", code=1).output.count("broken: ") == 1
    assert "chain intact" in run("audit", "verify", "--no-expect-key").output
    assert "problem  audit key      the store holds" in CliRunner().invoke(main, ["doctor"]).output

    assert "accepted " in run("audit", "accept").output
    verified = run("audit", "verify").output
    assert "chain intact" in verified
    assert "accepted on " in verified
    assert "the store holds" not in CliRunner().invoke(main, ["doctor"]).output


@pytest.mark.parametrize("arguments", [("verify",), ("heads",), ("rebuild",), ("accept",)], ids=" ".join)
def test_audit_commands_refuse_a_file_without_a_store(configure: Configure, arguments: tuple[str, ...]) -> None:
    store = configure({})
    store.parent.mkdir()
    store.touch()

    assert "is not a Windowpane store" in run("audit", *arguments, code=1).output
    assert store.read_bytes() == b""


def test_serve_sends_an_alert_about_a_broken_chain(
    configure: Configure, transcript: Path, free_port: Callable[[], int], wait_until: Callable[..., None]
) -> None:
    store = configure({"notify": {"channels": [{"url": "log://", "min_severity": "critical"}]}})
    run("import", transcript, "--limit", str(LIMIT))
    with closing(sqlite3.connect(store)) as raw, raw:
        raw.execute("UPDATE events SET body = replace(body, 'claude_code', 'somebody') WHERE seq = 3")
    log = store.parent / "serve.log"
    port = free_port()
    command = [sys.executable, "-m", "windowpane", "serve", "--port", str(port)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with log.open("wb") as output:
        serving = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
    try:
        wait_until(lambda: b"[critical] Audit chain broken" in log.read_bytes(), what="the message")
    finally:
        serving.send_signal(signal.SIGTERM)
        assert serving.wait(30) == 0
    with closing(SqliteStore(store)) as opened:
        delivered = opened.events(EventFilter(types=("notification.delivered",)))

    assert [one.event.data.alert for one in delivered] == ["audit_chain_broken"]  # type: ignore[union-attr]


def test_serve_refuses_what_would_mislead(configure: Configure, tmp_path: Path) -> None:
    configure({})
    empty = tmp_path / "token"
    empty.write_text("\n")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert f"cannot serve on 127.0.0.1:{port}" in run("serve", "--port", port, code=1).output
    assert "is empty" in run("serve", "--port", "0", "--bearer-token-file", empty, code=1).output
    output = run("serve", "--port", "0", "--tls-certificate", empty, "--tls-key", empty, code=1).output
    assert "cannot serve on" in output
    assert "Traceback" not in output


@pytest.mark.parametrize("command", ["serve", "dashboard", "watch"])
def test_nothing_is_served_to_other_machines_by_accident(
    configure: Configure, transcript: Path, command: str
) -> None:
    configure({"server": {"address": "0.0.0.0"}} if command == "watch" else {})
    arguments = [transcript] if command == "watch" else ["--address", "0.0.0.0"]
    output = run(command, *arguments, code=1).output

    assert "0.0.0.0" in output
    assert "from other machines" in output or "other machines can reach" in output
    assert "--insecure" in output
    assert "Traceback" not in output


def test_pruning_keeps_what_the_configured_retention_keeps(configure: Configure, transcript: Path) -> None:
    configure({"store": {"retention_days": 100_000}})
    run("import", transcript, "--limit", str(LIMIT))

    assert "deleted 0 sessions" in run("prune").output
    assert "deleted 1 session" in run("prune", "--older-than", "1").output
