"""The HTTP endpoint: responses, authentication, busy ports and load."""

from __future__ import annotations

import gzip
import json
import socket
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from endpoint import Start, fetch
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.registry import Collector, CollectorRegistry

from windowpane.config.outputs import Tls
from windowpane.metrics.prometheus import registry_of
from windowpane.outputs.http.connections import Limits
from windowpane.outputs.http.http_server import RunningServer
from windowpane.outputs.http.routes import Health, Routes, Target
from windowpane.outputs.http.service_discovery import target_at


def test_metrics_are_plain_text_by_default(server: RunningServer) -> None:
    reply = fetch(server, "/metrics")

    assert reply.status == 200
    assert reply.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert b"\ncontext_window_turns_total{" in reply.body


def test_openmetrics_is_served_on_request(server: RunningServer) -> None:
    reply = fetch(
        server,
        "/metrics",
        Accept="application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
    )

    assert reply.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
    assert reply.body.endswith(b"# EOF\n")
    assert len(list(parse_openmetrics(reply.body.decode()))) > 20


def test_gzip_is_served_if_accepted(server: RunningServer) -> None:
    plain = fetch(server, "/metrics")
    packed = fetch(server, "/metrics", Accept_Encoding="gzip")

    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    assert len(packed.body) < len(plain.body) / 5


def test_health_and_discovery_are_json(server: RunningServer) -> None:
    health, targets = fetch(server, "/healthz"), fetch(server, "/sd")

    assert (health.status, json.loads(health.body)) == (200, {"status": "ok", "events": 5})
    assert targets.headers["Content-Type"] == "application/json"
    assert json.loads(targets.body) == [{"targets": ["127.0.0.1:9464"], "labels": {"process": "12"}}]


def test_a_failing_exporter_has_status_503(start: Start, registry: CollectorRegistry) -> None:
    failing = Health(ok=False, details={"reason": "disk full"})
    with start(Routes(registry, health=lambda: failing), port=0) as server:
        reply = fetch(server, "/healthz")

    assert (reply.status, json.loads(reply.body)["reason"]) == (503, "disk full")


@pytest.mark.parametrize("path", ["/", "/metrics/", "/metrics/../healthz", "/favicon.ico"])
def test_other_paths_are_not_found(server: RunningServer, path: str) -> None:
    assert fetch(server, path).status == 404


def test_a_query_is_ignored_and_head_has_no_body(server: RunningServer) -> None:
    assert fetch(server, "/metrics?x=1").status == 200
    head = fetch(server, "/metrics", method="HEAD")
    assert (head.status, head.body) == (200, b"")
    assert int(head.headers["Content-Length"]) > 1_000
    assert fetch(server, "/metrics", method="POST").status in (405, 501)


def test_it_listens_on_loopback_by_default(server: RunningServer) -> None:
    assert server.host == "127.0.0.1"
    assert server.address == f"127.0.0.1:{server.port}"


def test_a_free_port_replaces_a_busy_one(
    start: Start, registry: CollectorRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    """The second endpoint takes another port and logs it, unless it must use this one."""
    with start(Routes(registry), port=0) as first:
        with start(Routes(registry), port=first.port) as second:
            assert second.port != first.port
            assert fetch(second, "/metrics").status == 200
        with pytest.raises(OSError, match="in use"):
            start(Routes(registry), port=first.port, free_port_if_busy=False)
    assert f"port {first.port} is busy" in caplog.text


def test_a_closed_endpoint_frees_its_port(start: Start, registry: CollectorRegistry) -> None:
    server = start(Routes(registry), port=0)
    port = server.port
    fetch(server, "/healthz")
    server.close()
    server.close()

    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=2).close()
    with start(Routes(registry), port=port, free_port_if_busy=False) as again:
        assert again.port == port


def test_a_failing_collector_is_an_error_of_one_request(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Collector):
        def collect(self) -> Iterator[object]:  # type: ignore[override]
            raise RuntimeError("secret detail")

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Broken())
    with start(Routes(registry), port=0) as server:
        reply = fetch(server, "/metrics")
        alive = fetch(server, "/healthz")

    assert reply.status == 500
    assert b"secret" not in reply.body
    assert "secret detail" in caplog.text
    assert alive.status == 200


class Blocked(Collector):
    """A collector that counts its runs and waits for the test."""

    def __init__(self) -> None:
        self.runs = 0
        self.proceed = threading.Event()

    def collect(self) -> Iterator[Metric]:
        self.runs += 1
        self.proceed.wait(30)
        yield Metric("blocked", "", "gauge")


def test_requests_beyond_the_limit_get_status_503(start: Start, wait_until: Callable[..., None]) -> None:
    blocked, registry = Blocked(), CollectorRegistry(auto_describe=False)
    registry.register(blocked)
    with (
        start(Routes(registry), port=0, limits=Limits(connections=1, admission_seconds=0.1)) as server,
        ThreadPoolExecutor() as pool,
    ):
        first = pool.submit(fetch, server, "/metrics")
        wait_until(lambda: blocked.runs == 1, what="the first request")

        assert fetch(server, "/metrics").status == 503
        blocked.proceed.set()
        assert first.result().status == 200
        assert fetch(server, "/healthz").status == 200


def test_a_request_beyond_the_limit_waits_for_room(start: Start, wait_until: Callable[..., None]) -> None:
    blocked, registry = Blocked(), CollectorRegistry(auto_describe=False)
    registry.register(blocked)
    with (
        start(Routes(registry), port=0, limits=Limits(connections=1, admission_seconds=20)) as server,
        ThreadPoolExecutor() as pool,
    ):
        first = pool.submit(fetch, server, "/metrics")
        wait_until(lambda: blocked.runs == 1, what="the first request")
        waiting = pool.submit(fetch, server, "/healthz")
        threading.Timer(0.3, blocked.proceed.set).start()

        assert waiting.result().status == 200
        first.exception()  # its client may be slower than the next one, and makes room


def test_an_idle_connection_makes_room(start: Start, registry: CollectorRegistry) -> None:
    with start(Routes(registry), port=0, limits=Limits(connections=2)) as server:
        idle = [socket.create_connection((server.host, server.port), timeout=5) for _ in range(5)]
        try:
            assert fetch(server, "/metrics").status == 200
        finally:
            for connection in idle:
                connection.close()


def test_requests_at_once_share_one_collection(start: Start, wait_until: Callable[..., None]) -> None:
    blocked, registry = Blocked(), CollectorRegistry(auto_describe=False)
    registry.register(blocked)
    with start(Routes(registry), port=0) as server, ThreadPoolExecutor(12) as pool:
        first = pool.submit(fetch, server, "/metrics")
        wait_until(lambda: blocked.runs == 1, what="the first collection")
        others = [pool.submit(fetch, server, "/metrics") for _ in range(10)]
        wait_until(lambda: len(_threads_of_requests()) == 11, what="the other requests")
        time.sleep(0.05)  # until the last of them waits for its run
        blocked.proceed.set()

        assert {reply.result().status for reply in (first, *others)} == {200}
        assert blocked.runs == 2


def _threads_of_requests() -> list[threading.Thread]:
    names = ("process_request_thread", "windowpane-request")
    return [thread for thread in threading.enumerate() if any(name in thread.name for name in names)]


@pytest.mark.server
def test_a_real_prometheus_discovers_scrapes_and_answers(
    start: Start,
    *,
    registry: CollectorRegistry,
    require_server,
    run_server,
    free_port,
    wait_until: Callable[..., None],
    certificates: Path,
    tmp_path: Path,
) -> None:
    targets: list[Target] = []
    tls = Tls(certificate=certificates / "cert.pem", key=certificates / "key.pem")
    with (
        start(Routes(registry, targets=lambda: targets), port=0) as server,
        start(Routes(registry_of()), port=0, tls=tls) as protected,
    ):
        targets.append(Target(server.address, {"process": "test"}))
        hidden = target_at(protected.host, protected.port, protected.scheme)
        targets.append(Target(hidden.address, {**hidden.labels, "process": "protected"}))
        config = tmp_path / "prometheus.yml"
        config.write_text(
            "global: {scrape_interval: 1s}\n"
            "scrape_configs:\n"
            "  - job_name: windowpane\n"
            f"    tls_config: {{ca_file: '{certificates / 'cert.pem'}'}}\n"
            f"    http_sd_configs: [{{url: 'http://{server.address}/sd', refresh_interval: 1s}}]\n"
        )
        base = f"http://127.0.0.1:{free_port()}"

        def query(expression: str) -> dict[str, str]:
            url = f"{base}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
            with urllib.request.urlopen(url, timeout=5) as response:
                results = json.load(response)["data"]["result"]
            return {result["metric"].get("process", ""): result["value"][1] for result in results}

        def ready() -> bool:
            try:
                with urllib.request.urlopen(f"{base}/-/ready", timeout=2) as response:
                    return bool(response.status == 200)
            except OSError:
                return False

        run_server(
            [
                require_server("prometheus"),
                f"--config.file={config}",
                f"--storage.tsdb.path={tmp_path / 'data'}",
                f"--web.listen-address={base.removeprefix('http://')}",
            ],
            ready=ready,
        )
        wait_until(lambda: query("up") == {"test": "1", "protected": "1"}, what="a scrape")

        assert query("context_window_utilization_ratio") == {"test": "0.6634521484375"}
        assert query("sum by (process) (context_window_used_tokens)") == {"test": "5435"}
        assert query("context_window_turns_total") == {"test": "6"}
        assert float(query("histogram_quantile(0.5, context_window_turn_utilization_ratio_bucket)")["test"]) < 0.5
