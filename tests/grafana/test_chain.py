"""The whole way of an alert: tracker, engine, endpoint, Prometheus, Alertmanager, webhook, all of them real."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from prometheus_client.registry import CollectorRegistry
from stack import alertmanager, get, inbox, prometheus, wait_for

from windowpane.alerts.engine import AlertEngine
from windowpane.alerts.rules import RULES
from windowpane.core.events import BlocksEvicted, Event, EvictedBlock, Usage
from windowpane.core.limits import WindowLimits
from windowpane.core.tracking.tracker import SessionInfo, SessionTracker
from windowpane.metrics.fold import AlertKey, MetricState, StateSource
from windowpane.metrics.internal import InternalMetrics
from windowpane.metrics.prometheus import registry_of
from windowpane.outputs.http.http_server import start_http_server
from windowpane.outputs.http.routes import Routes

LIMIT = 100_000


class Agent:
    """One agent's process: a tracked session, judged by the engine and folded into metrics."""

    def __init__(self) -> None:
        self.now = 1_000_000_000.0
        self.state = MetricState(alerts=[AlertKey(rule.name, rule.severity) for rule in RULES])
        self.engine = AlertEngine()
        self.tracker = SessionTracker(
            SessionInfo("s1", "reviewer", "gpt-5", "live", "stream"),
            emit=self._emit,
            digest=lambda text: text,
            limits=WindowLimits.of(LIMIT, "given"),
            clock=lambda: self.now,
        )
        self.blocks: list[EvictedBlock] = []
        self.used = 0

    def _emit(self, batch: list[Event]) -> None:
        self.state.write(batch)
        self.state.write(self.engine.evaluate(batch))

    def turn(self, tokens: int) -> None:
        """One call with a message of *tokens*."""
        self.now += 5
        block = self.tracker.add("user_message", f"part {self.now}", tokens)
        self.blocks.append(EvictedBlock(block.id, "user_message", tokens, "drop", "test"))
        self.used += tokens
        self.tracker.end_turn(Usage(self.used, 10))

    def evict(self) -> None:
        """Take all but the newest block out, as a policy would."""
        self.now += 5
        *older, newest = self.blocks
        removed = sum(block.tokens for block in older)
        self.tracker.evict(BlocksEvicted("hybrid", tuple(older), removed, removed))
        self.blocks, self.used = [newest], newest.tokens

    def registry(self) -> CollectorRegistry:
        source = StateSource(self.state, clock=lambda: self.now)
        return registry_of(source, InternalMetrics(version="1", clock=lambda: self.now))


def labels_of(line: str) -> dict[str, str]:
    match = re.match(r"\[(\w+)\] (\w+) (\w+) (\w+) (.*?):", line)
    assert match, line
    receiver, status, severity, name, where = match.groups()
    pairs = dict(pair.split("=", 1) for pair in where.split())
    return {"receiver": receiver, "status": status, "severity": severity, "alertname": name, **pairs}


@pytest.mark.server
def test_an_alert_reaches_the_webhook_and_so_does_its_resolution(tmp_path: Path, require_server) -> None:
    agent = Agent()
    agent.tracker.start()
    agent.turn(20_000)
    with (
        start_http_server(Routes(agent.registry()), port=0) as exporter,
        inbox(tmp_path) as (inbox_address, log),
        alertmanager(
            tmp_path, require_server("prometheus-alertmanager"), inbox=inbox_address
        ) as alertmanager_address,
        prometheus(
            tmp_path, require_server("prometheus"), exporter=exporter.address, alertmanager=alertmanager_address
        ) as server,
    ):

        def arrived(name: str, status: str) -> dict[str, str] | None:
            for line in log.read_text().splitlines():
                if (match := labels_of(line))["alertname"] == name and match["status"] == status:
                    return {**match, "line": line}
            return None

        wait_for(lambda: server.query('up{job="windowpane"} == 1'), "a scrape")
        assert log.read_text() == ""

        for tokens in (*[3_800] * 20, 500, 500):
            agent.turn(tokens)
        fired = wait_for(lambda: arrived("ContextWindowOutputReserve", "firing"), "the critical alert")

        assert (fired["receiver"], fired["severity"]) == ("critical", "critical")
        assert fired["agent"] == "reviewer"
        assert "No room for an answer: agent reviewer" in fired["line"]
        assert "/?agent=reviewer" in fired["line"]
        runbook = re.search(r"(http://\S+/user/runbook\.html)#output_reserve", fired["line"])
        assert runbook, fired["line"]
        page = get(f"{server.url}/user/runbook.html")
        assert page is not None
        assert 'id="output_reserve"' in page

        silenced = json.loads(get(f"http://{alertmanager_address}/api/v2/alerts") or "[]")
        muted = {one["labels"]["alertname"] for one in silenced if one["status"]["inhibitedBy"]}
        assert "ContextWindowOutputReserve" not in muted
        assert muted == {"ContextWindowRedImminent", "ContextWindowYellowEntered"}

        agent.evict()
        for _ in range(2):
            agent.turn(100)
        resolved = wait_for(lambda: arrived("ContextWindowOutputReserve", "resolved"), "the resolution")

        assert resolved["receiver"] == "critical"
        assert server.query('ALERTS{alertname="ContextWindowOutputReserve",alertstate="firing"}') == []
        received = [labels_of(line) for line in log.read_text().splitlines()]
        assert all(one["receiver"] == one["severity"] for one in received), "routed by severity"


@pytest.mark.server
def test_the_inbox_takes_only_what_alertmanager_sends(tmp_path: Path) -> None:
    with inbox(tmp_path) as (address, log):

        def post(body: bytes) -> int:
            request = urllib.request.Request(f"http://{address}/info", body, method="POST")
            try:
                with urllib.request.urlopen(request, timeout=5) as response:
                    return int(response.status)
            except urllib.error.HTTPError as error:
                error.close()
                return error.code

        alert = {"status": "firing", "labels": {"alertname": "A", "agent": "x\n[critical] y"}, "annotations": {}}
        assert [post(b"no json"), post(b"[]"), post(b'{"alerts": [1]}')] == [400, 400, 400]
        assert post(json.dumps({"alerts": [alert]}).encode()) == 200
        assert log.read_text().count("\n") == 1
