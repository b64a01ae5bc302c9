"""Commands under unusual conditions: no keyboard, a narrow terminal, odd input, a port that is taken."""

from __future__ import annotations

import json
import os
import pty
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from windowpane.cli import main
from windowpane.cli.options import EXIT_FAILED, EXIT_PARTIAL, EXIT_USAGE
from windowpane.metrics.prometheus import registry_of
from windowpane.outputs.http.http_server import start_http_server
from windowpane.outputs.http.routes import Health, Routes

Run = Callable[..., Result]

PI_HEADER = {"type": "session", "id": "s0", "cwd": "/", "timestamp": "2026-01-01T00:00:00Z"}
PI_MESSAGE = {"type": "message", "id": "e0", "message": {"role": "user", "content": "Why?"}}


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "conversation.json"
    messages = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "The port is taken."}]
    path.write_text(json.dumps(messages), encoding="utf-8")
    return path


@contextmanager
def speaking(text: bytes) -> Iterator[int]:
    """Run a server that answers every client with *text*, and yield its port."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:

        def answer() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    connection.sendall(text)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield int(listening.getsockname()[1])
        listening.shutdown(socket.SHUT_RDWR)
        thread.join(10)


def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, document: dict[str, Any]) -> None:
    path = tmp_path / "windowpane.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    monkeypatch.setenv("WINDOWPANE_CONFIG", str(path))


def metrics_finding(run: Run, *, code: int = 0) -> dict[str, str]:
    findings: list[dict[str, str]] = json.loads(run("doctor", "--json", code=code).stdout)
    return next(finding for finding in findings if finding["subject"] == "metrics")


class TestTop:
    def test_it_runs_on_a_terminal_without_a_keyboard(
        self, run: Run, recording: Path, store: Path, wait_until: Callable[..., None]
    ) -> None:
        run("import", recording)
        screen, terminal = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-m", "windowpane", "top", "--all"], stdin=subprocess.DEVNULL, stdout=terminal,
            stderr=subprocess.PIPE, env={**os.environ, "WINDOWPANE_STORE": str(store), "TERM": "xterm"},
        )  # fmt: skip
        os.close(terminal)
        drawn: list[bytes] = []
        reader = threading.Thread(target=lambda: drawn.extend(iter(lambda: _read(screen), b"")), daemon=True)
        reader.start()
        try:
            wait_until(lambda: process.poll() is not None or b"by pressure" in b"".join(drawn), what="the table")
            pauses = len(drawn)
            started = time.monotonic()
            wait_until(
                lambda: process.poll() is not None or time.monotonic() - started > 1.5, what="some refreshes"
            )
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=20)
        finally:
            process.kill()
            process.communicate()
            os.close(screen)

        assert (process.returncode, errors) == (0, b"")
        assert len(drawn) - pauses < 20

    def test_a_narrow_terminal_cuts_no_number_of_what_is_printed_once(
        self, run: Run, recording: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run("import", recording)
        monkeypatch.setenv("COLUMNS", "40")

        header = run("top", "--all", "--once").stdout.splitlines()[1]

        assert header.split()[-2:] == ["cost", "last"]


def _read(file: int) -> bytes:
    try:
        return os.read(file, 65_536)
    except OSError:  # the program has ended
        return b""


class TestHook:
    @pytest.mark.parametrize(
        "given",
        [
            '{"context_window": {"context_window_size": Infinity, "current_usage": {"input_tokens": 5}}}',
            '{"context_window": {"current_usage": {"input_tokens": Infinity}}}',
            '{"a":' * 100_000,
        ],
        ids=["endless window", "endless usage", "deep"],
    )
    def test_a_status_line_never_shows_an_error(self, run: Run, given: str) -> None:
        for name in ("status", "import"):
            result = CliRunner().invoke(main, ["hook", name], input=given)

            assert (result.exit_code, result.exception) == (0, None)

    def test_a_store_that_cannot_be_read_costs_only_the_pace(self, run: Run, store: Path) -> None:
        store.parent.mkdir()
        store.write_bytes(b"no database" * 1_000)
        window = {"context_window_size": 200_000, "current_usage": {"input_tokens": 100_000}}

        result = CliRunner().invoke(
            main, ["hook", "status"], input=json.dumps({"session_id": "s", "context_window": window})
        )

        assert "50%" in result.stdout


class TestReplay:
    @pytest.mark.parametrize("keep", ["²", "0", "-1", "many"])
    def test_groups_to_keep_are_a_number(self, run: Run, recording: Path, keep: str) -> None:
        result = run("replay", recording, "--keep", keep, code=EXIT_USAGE)

        assert f"{keep!r} is not a number of groups" in result.output

    def test_no_window_is_an_error_and_not_an_empty_result(self, run: Run, recording: Path) -> None:
        assert "no size given" in run("replay", recording, "--window", "", code=EXIT_USAGE).output


class TestServe:
    def test_an_authority_for_clients_needs_a_certificate(self, run: Run, recording: Path) -> None:
        result = run("serve", "--tls-client-ca", recording, code=EXIT_USAGE)

        assert "--tls-client-ca requires --tls-certificate" in result.output

    def test_a_bad_certificate_is_named(self, run: Run, recording: Path) -> None:
        result = run(
            "serve", "--port", "0", "--tls-certificate", recording, "--tls-key", recording, code=EXIT_FAILED
        )

        assert f"certificate {recording}" in result.output


class TestWatch:
    def test_nothing_to_import_is_reported(self, run: Run, tmp_path: Path) -> None:
        assert "no session" in run("watch", "--once", tmp_path).stderr


class TestAlertsTest:
    @pytest.mark.parametrize(
        "url", ["alertmanager://host:99999", "alertmanager://host:port", "alertmanager://[::1", "json://[::1"]
    )
    def test_an_address_that_is_none_is_one_line(self, run: Run, url: str) -> None:
        output = run("alerts", "test", url, code=EXIT_FAILED).output

        assert output.startswith("Error: notify.channels.url:")
        assert url not in output

    def test_a_plain_webhook_is_pointed_to_its_scheme(self, run: Run) -> None:
        output = run("alerts", "test", "https://hooks.example.org/T0/secret", code=EXIT_FAILED).output

        assert "jsons://" in output
        assert "secret" not in output

    def test_something_that_does_not_speak_http_is_a_failed_delivery(self, run: Run) -> None:
        with speaking(b"-ERR unknown command\r\n") as port:
            output = run("alerts", "test", f"alertmanager://127.0.0.1:{port}", code=EXIT_FAILED).output

        assert output.startswith("not delivered to alertmanager")


class TestDoctor:
    def test_it_looks_at_the_configured_port(
        self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with start_http_server(Routes(registry_of()), port=0) as server:
            configured(tmp_path, monkeypatch, {"server": {"port": server.port}})

            assert metrics_finding(run)["detail"] == f"responds on port {server.port}"

    def test_an_endpoint_that_other_machines_could_read_is_a_problem(
        self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It would refuse to start; the finding names the ways out."""
        configured(tmp_path, monkeypatch, {"server": {"address": "0.0.0.0"}})

        finding = metrics_finding(run, code=EXIT_FAILED)

        assert finding["verdict"] == "problem"
        assert "server.bearer_token" in finding["detail"]

    def test_a_failing_server_differs_from_another_program(
        self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with start_http_server(Routes(registry_of(), health=lambda: Health(ok=False)), port=0) as server:
            configured(tmp_path, monkeypatch, {"server": {"port": server.port}})

            detail = metrics_finding(run, code=EXIT_FAILED)["detail"]

        assert detail == f"port {server.port} reports a failure; see http://{server.address}/healthz"

    @pytest.mark.parametrize("text", [b"-ERR unknown command\r\n", b"", b"HTTP/1.0 404 No\r\n\r\n"])
    def test_a_port_of_another_program_is_a_problem(
        self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: bytes
    ) -> None:
        with speaking(text) as port:
            configured(tmp_path, monkeypatch, {"server": {"port": port}})

            finding = metrics_finding(run, code=EXIT_FAILED)

        assert finding["verdict"] == "problem"
        assert f"port {port} is in use by another program (/healthz" in finding["detail"]

    def test_a_proxy_of_the_environment_is_not_used_for_this_machine(
        self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
        monkeypatch.delenv("no_proxy", raising=False)
        with start_http_server(Routes(registry_of()), port=0) as server:
            configured(tmp_path, monkeypatch, {"server": {"port": server.port}})

            assert metrics_finding(run)["verdict"] == "ok"

    @pytest.mark.parametrize(
        ("key", "verdict"), [("x" * 32, "ok"), ("short", "problem"), (None, "problem")], ids=str
    )
    def test_the_audit_key_is_the_one_commands_use(
        self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str | None, verdict: str
    ) -> None:
        file = tmp_path / "audit.key"
        if key is not None:
            file.write_text(key, encoding="utf-8")
        configured(tmp_path, monkeypatch, {"store": {"audit_key_file": str(file)}})

        findings = json.loads(run("doctor", "--json", code=0 if verdict == "ok" else EXIT_FAILED).stdout)

        assert [one["verdict"] for one in findings if one["subject"] == "audit key"] == [verdict]


class TestDemo:
    def test_terminated_while_it_starts_it_stops_the_dashboard(
        self, tmp_path: Path, wait_until: Callable[..., None]
    ) -> None:
        program = (
            "import sys, time\nfrom pathlib import Path\n"
            "from windowpane.cli.dashboard_process import dashboard_process\n"
            "with dashboard_process(Path(sys.argv[1]), port=0) as dashboard:\n"
            "    print(dashboard._process.pid, flush=True)\n    time.sleep(60)\n"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path / "demo.db")], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        child = int(process.stdout.readline())
        process.terminate()
        process.wait(timeout=30)
        process.stdout.close()

        assert process.returncode == 128 + signal.SIGTERM
        wait_until(lambda: not _runs(child), what="the dashboard ends")


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


class TestNamesThatAreNotUtf8:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        """A folder with a finished recording, of which a line cannot be read."""
        folder = tmp_path / os.fsdecode(b"caf\xe9")
        path = folder / os.fsdecode(b"session\xff.jsonl")
        try:
            folder.mkdir()
            path.write_text(f"{json.dumps(PI_HEADER)}\n{json.dumps(PI_MESSAGE)}\nnot JSON\n", encoding="utf-8")
        except OSError:
            pytest.skip("the file system takes only names in UTF-8")
        os.utime(path, (1e9, 1e9))
        return folder

    @pytest.mark.parametrize("options", [(), ("--newest-first",), ("--capture",)], ids=str)
    def test_a_recording_is_imported_once_and_its_file_is_named_with_escapes(
        self, run: Run, folder: Path, options: tuple[str, ...]
    ) -> None:
        shown = run("import", folder, *options, code=EXIT_PARTIAL)
        (report,) = json.loads(run("import", folder, *options, "--json", code=EXIT_PARTIAL).stdout)

        file = f"{folder.parent}/caf\\udce9/session\\udcff.jsonl"
        assert "1 session" in shown.stdout
        assert report["file"] == file
        assert report["problems"] == [f"{file}:3: not JSON: Expecting value at character 1"]
        assert [session["appended"] for session in report["sessions"]] == [0]

    def test_a_store_is_written_and_read(self, run: Run, folder: Path) -> None:
        store = folder / os.fsdecode(b"store\xe9.db")
        run("import", folder / os.fsdecode(b"session\xff.jsonl"), "--store", store, code=EXIT_PARTIAL)

        (session,) = json.loads(run("sessions", "--json", "--store", store).stdout)
        assert session["session_id"] == "pi:s0"

    @pytest.mark.parametrize(
        ("arguments", "code"),
        [
            (("sessions", "--folder", "caf\udce9"), 0),
            (("advise", "--agent", "caf\udce9"), 0),
            (("report", "caf\udce9"), EXIT_FAILED),
            (("replay", "caf\udce9"), EXIT_FAILED),
        ],
        ids=lambda value: value[0] if isinstance(value, tuple) else str(value),
    )
    def test_a_name_that_no_session_has_matches_none(
        self, run: Run, recording: Path, arguments: tuple[str, ...], code: int
    ) -> None:
        run("import", recording)

        result = run(*arguments, code=code)
        assert isinstance(result.exception, SystemExit | None)

    def test_the_recording_of_a_session_is_found_by_its_name(self, run: Run, folder: Path) -> None:
        (report,) = json.loads(
            run("import", folder, "--session", "session\udcff", "--json", code=EXIT_PARTIAL).stdout
        )
        assert report["sessions"]
