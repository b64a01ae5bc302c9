"""`windowpane serve --ingest` as a process, agents that send to it, TLS, and what is refused at the start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from click.testing import CliRunner

import windowpane
from windowpane.cli import main
from windowpane.config.loading import load_config
from windowpane.config.outputs import Tls
from windowpane.exceptions import ConfigurationError
from windowpane.outputs.http.asgi_server import start_asgi_server
from windowpane.outputs.http.routes import Routes
from windowpane.outputs.remote.connection import server_address
from windowpane.outputs.remote.endpoint import IngestEndpoint
from windowpane.outputs.remote.group_commit import GroupCommit
from windowpane.store.embedded import SqliteStore
from windowpane.store.filters import AlertFilter, SessionFilter
from windowpane.testing import chat_reply

ALPHA, BETA, OWN = "alpha-token-0123456789", "beta-token-0123456789", "own-token-0123456789"


class Server(NamedTuple):
    """A running `serve --ingest` and its store."""

    process: subprocess.Popen[bytes]
    port: int
    store: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@pytest.fixture(autouse=True)
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test has a separate folder for what waits."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


@pytest.fixture
def serve(tmp_path: Path, free_port, run_server) -> Callable[..., Server]:
    """Starts `windowpane serve --ingest` for two projects, by the command or another *program*."""
    config = tmp_path / "server.yml"
    projects = {"alpha": {"tokens": [ALPHA]}, "beta": {"tokens": [BETA]}}
    config.write_text(yaml.safe_dump({"projects": projects, "server": {"bearer_token": OWN}}))
    store, port = tmp_path / "server.db", free_port()

    def start(*program: str | Path) -> Server:
        def ready() -> bool:
            try:
                return urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=2).status == 200
            except OSError:
                return False

        command = [
            "env", f"WINDOWPANE_CONFIG={config}", sys.executable, *(program or ("-m", "windowpane")),
            "serve", "--ingest", "--port", str(port), "--store", store,
        ]  # fmt: skip
        return Server(run_server(command, ready=ready), port, store)

    return start


def run_agent(server: Server, name: str, session: str, turns: int, *, token: str) -> str:
    """Run an agent to its end; return the store's problem, empty where everything was acknowledged."""
    settings = {"ingest": {"token": token}}
    with windowpane.start(store=server.url, port=0, notify=[], settings=settings) as running:
        with windowpane.ContextWindowManager(agent=name, model="gpt-4o", session_id=session) as window:
            for turn in range(turns):
                window.add_user(f"message {turn}")
                window.on_turn_start()
                window.on_turn_end(chat_reply("certainly"))
        acknowledged, problem = running.flush(10), running._store.problem
        assert acknowledged == (not problem)
        return problem


def test_agents_of_two_projects_store_through_one_server(serve, wait_until) -> None:
    """Each session has the project of its token; what waits for a wrong token is not sent with another.

    The metrics of the server include what it received; the token of a project does not open them.
    """
    server = serve()

    def metrics(token: str) -> str:
        request = urllib.request.Request(f"{server.url}/metrics", headers={"Authorization": f"Bearer {token}"})
        return urllib.request.urlopen(request, timeout=5).read().decode()

    assert run_agent(server, "reviewer", "s1", 5, token=ALPHA) == ""
    assert run_agent(server, "writer", "s2", 3, token=BETA) == ""
    assert "answered 401" in run_agent(server, "thief", "s3", 1, token="a wrong token of some length")
    assert run_agent(server, "late", "s4", 1, token=OWN) == ""
    wait_until(lambda: 'turns_total{agent="reviewer",model="gpt-4o"} 5' in metrics(OWN), what="the counter")
    with pytest.raises(urllib.error.HTTPError, match="401"):
        metrics(ALPHA)

    with closing(SqliteStore(server.store)) as store:
        rows = {row.session_id: row for row in store.sessions(SessionFilter())}
        assert {name: row.project for name, row in rows.items()} == {
            "s1@alpha": "alpha",
            "s2@beta": "beta",
            "s4": "",
        }
        assert rows["s1@alpha"].turns == 5
        assert all(row.ended for row in rows.values())
        assert store.verify().intact


HELD = """
import sys, time
from pathlib import Path
from windowpane.cli import main
from windowpane.store.reads.reader import Reader
scan = Reader.scan
def held(*arguments, **options):
    while not Path(sys.argv[1]).exists():
        time.sleep(0.02)
    return scan(*arguments, **options)
Reader.scan = held
main(sys.argv[2:])
"""


def test_a_server_receives_before_the_stored_events_are_folded(serve, tmp_path: Path, wait_until) -> None:
    first = serve()
    assert run_agent(first, "reviewer", "s1", 5, token=OWN) == ""
    first.process.kill()
    first.process.wait()
    go = tmp_path / "go"
    server = serve("-c", HELD, go)

    def metrics() -> str:
        request = urllib.request.Request(f"{server.url}/metrics", headers={"Authorization": f"Bearer {OWN}"})
        return urllib.request.urlopen(request, timeout=5).read().decode()

    assert run_agent(server, "reviewer", "s2", 3, token=OWN) == ""
    with pytest.raises(urllib.error.HTTPError, match="503"):
        metrics()
    go.touch()
    wait_until(lambda: json.loads(fetch(f"{server.url}/healthz"))["status"] == "ok", what="folding")

    wait_until(lambda: 'turns_total{agent="reviewer",model="gpt-4o"} 8' in metrics(), what="the counter")


def fetch(url: str) -> bytes:
    return urllib.request.urlopen(url, timeout=5).read()


def test_a_server_beyond_loopback_needs_tokens_or_client_certificates(tmp_path: Path, monkeypatch) -> None:
    """A certificate of the server alone would let everyone send calls and read the metrics; so would tokens of
    projects, which only the endpoint of events asks for.
    """
    config = tmp_path / "server.yml"
    config.write_text(yaml.safe_dump({"projects": {"alpha": {"tokens": [ALPHA]}}}))
    monkeypatch.setenv("WINDOWPANE_CONFIG", str(config))
    monkeypatch.setenv("WINDOWPANE_STORE", str(tmp_path / "w.db"))
    for name in ("cert.pem", "key.pem"):
        (tmp_path / name).write_text("")
    tls = ["--tls-certificate", str(tmp_path / "cert.pem"), "--tls-key", str(tmp_path / "key.pem")]

    result = CliRunner().invoke(
        main, ["serve", "--ingest", "--otlp", "--address", "0.0.0.0", "--port", "0", *tls]
    )

    assert result.exit_code == 1
    assert "0.0.0.0 can be reached from other machines" in result.output
    assert "--tls-client-ca" in result.output


def test_without_the_extra_the_command_to_install_it_is_named(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "windowpane.outputs.http.asgi_server", None)

    result = CliRunner().invoke(main, ["serve"])

    assert result.exit_code == 1
    assert "run: pip install 'windowpane-observability[serve]'" in result.output


@pytest.fixture
def encrypted(certificates: Path, tmp_path: Path) -> Iterator[tuple[str, SqliteStore]]:
    """An endpoint that asks for client certificates, and its store."""
    store = SqliteStore(tmp_path / "server.db")
    commits = GroupCommit(store)
    commits.start()
    certificate, key = certificates / "cert.pem", certificates / "key.pem"
    tls = Tls(certificate=certificate, key=key, client_ca=certificate)
    with start_asgi_server(Routes(posts=IngestEndpoint(commits).posts), port=0, tls=tls) as server:
        yield f"https://127.0.0.1:{server.port}", store
    commits.close()
    store.close()


def test_agents_send_over_tls_with_certificates_of_both_sides(encrypted, certificates: Path) -> None:
    url, store = encrypted
    authority = {"ca": certificates / "cert.pem"}
    client = {"certificate": certificates / "cert.pem", "key": certificates / "key.pem"}
    problems = []
    for number, ingest in enumerate(({}, authority, authority | client)):
        running = windowpane.start(store=url, port=0, notify=[], settings={"ingest": ingest})
        try:
            with windowpane.ContextWindowManager(agent="a", model="gpt-4o", session_id=f"s{number}") as window:
                window.add_user("hello")
            running.flush(5)
            problems.append(running._store.problem)
        finally:
            running.close(5)

    assert "its certificate is not trusted" in problems[0]
    assert problems[1] != ""
    assert problems[2] == ""
    assert {row.session_id for row in store.sessions(SessionFilter())} == {"s0", "s1", "s2"}


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("http://windowpane.internal", "unencrypted"),
        ("https://user:secret@windowpane.internal", "must not contain a user"),
        ("https://windowpane.internal/?token=secret", "a query"),
        ("https://", "does not name a server"),
        ("https://host:port", "is not a URL"),
    ],
)
def test_addresses_that_cannot_be_used_are_refused_at_the_start(
    url: str, problem: str, tmp_path, monkeypatch
) -> None:
    with pytest.raises(ConfigurationError, match=problem) as error:
        windowpane.start(store=url, port=0)

    assert "secret" not in str(error.value)


def test_the_address_of_the_endpoint_follows_from_that_of_the_server() -> None:
    assert server_address("https://windowpane.internal").path == "/ingest/v1/events"
    assert server_address("https://proxy/team/windowpane/").path == "/team/windowpane/ingest/v1/events"
    assert server_address("http://[::1]:9464").url == "http://[::1]:9464"
    assert server_address("http://windowpane:9464", insecure=True).port == 9464


def test_the_token_comes_from_the_environment_and_is_never_shown() -> None:
    """`WINDOWPANE_INGEST_TOKEN` is text, whatever it looks like."""
    config = load_config(
        environ={"WINDOWPANE_STORE": "https://windowpane.internal", "WINDOWPANE_INGEST_TOKEN": "12345"}
    )

    assert config.ingest.token is not None
    assert config.ingest.token.get_secret_value() == "12345"
    assert "12345" not in repr(config)


def test_commands_that_read_report_that_the_store_is_elsewhere(monkeypatch) -> None:
    monkeypatch.setenv("WINDOWPANE_STORE", "https://windowpane.internal")

    result = CliRunner().invoke(main, ["sessions"])

    assert result.exit_code == 1
    assert "receives events and cannot be opened as a store" in result.output


def test_a_process_that_sends_has_metrics_and_alerts_of_its_own(serve) -> None:
    server = serve()
    with windowpane.start(store=server.url, port=0, notify=[], settings={"ingest": {"token": OWN}}) as running:
        alerts: list[str] = []
        running.listen("alert.fired", lambda event: alerts.append(event.data.alert))
        with windowpane.ContextWindowManager(
            agent="reviewer", model="gpt-4o", session_id="s1", limit_tokens=1_000
        ) as window:
            for _ in range(4):
                window.add_user("word " * 400)
                window.on_turn_start()
                window.on_turn_end(chat_reply("certainly"))
        assert running.flush(10)
        server.process.kill()
        server.process.wait()
        with windowpane.ContextWindowManager(agent="reviewer", model="gpt-4o", session_id="s2"):
            pass
        assert not running.flush(5)
        assert running.url is not None
        health = json.loads(urllib.request.urlopen(running.url.replace("/metrics", "/healthz"), timeout=5).read())
        text = urllib.request.urlopen(running.url, timeout=5).read().decode()

    assert alerts
    assert health["status"] == "degraded"
    assert "127.0.0.1" in health["store_problem"]
    assert "windowpane_store_available 0.0" in text
    assert 'context_window_turns_total{agent="reviewer",model="gpt-4o"} 4.0' in text
    with closing(SqliteStore(server.store)) as store:
        assert store.alerts(AlertFilter(session_id="s1"))


FIRST_BATCH = """
import gc, sys
from contextlib import closing
from bench_store import session
from windowpane.cli.serve import ingesting
from windowpane.config.schema import Config
from windowpane.core.digests import keyed_digester
from windowpane.outputs.remote.access import IngestAccess
from windowpane.outputs.http.store_exporter import StoreExporter
from windowpane.store.open import open_store
from windowpane.store.writes.received import ReceivedBatch
with closing(open_store(sys.argv[1])) as store:
    serving = StoreExporter(store, config=Config())
    access = IngestAccess(Config(), bearer_token=None)
    with ingesting(store, serving, serving.routes(), access):
        loaded, frozen = set(sys.modules), gc.get_freeze_count()
        store.receive([ReceivedBatch(session("s1", 100, keyed_digester(b"key")))])
        assert serving.catch_up() >= 100
        print(*sorted(one for one in set(sys.modules) - loaded if not one.startswith("windowpane")))
        assert frozen > 10_000
    assert gc.get_freeze_count() == 0
"""


def test_the_first_senders_do_not_wait_for_what_a_server_loads_once(tmp_path: Path) -> None:
    benchmarks = Path(__file__).parents[3] / "benchmarks"
    command = [sys.executable, "-c", FIRST_BATCH, tmp_path / "windowpane.db"]
    loaded = subprocess.run(
        command,
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(benchmarks)},
    )

    assert (loaded.stdout.strip(), loaded.stderr) == ("", "")
