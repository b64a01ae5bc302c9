"""The page on adding Windowpane to a Prometheus, followed to the letter by a machine.

Every block of the section is taken from the page and executed. Only what differs between machines is replaced:
the environment's folder, and the ports of the three servers.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from stack import GRAFANA, get, port, process, wait_for

PAGE = "docs/prometheus.md"
EXISTING = {"global": {"scrape_interval": "1s", "evaluation_interval": "1s"}}
"""Configuration of an existing Prometheus before anything is added."""


@dataclass(frozen=True)
class Steps:
    """The blocks of the section in their order."""

    agent: str
    rules: str
    configuration: str
    check: str
    query: str


@dataclass(frozen=True)
class Ports:
    exporter: int
    prometheus: int
    alertmanager: int

    def moved(self, text: str) -> str:
        """*text* with the ports of this run."""
        for documented, used in (("9464", self.exporter), ("9090", self.prometheus), ("9093", self.alertmanager)):
            text = text.replace(f":{documented}", f":{used}").replace(f"--port {documented}", f"--port {used}")
        return text


@pytest.fixture(scope="module")
def steps(root: Path) -> Steps:
    """The section's five steps; another number of blocks is a section that this test no longer follows."""
    page = (root / PAGE).read_text(encoding="utf-8")
    blocks = re.findall(r"```(\w+)\n(.*?)```", page, re.DOTALL)
    assert [language for language, _ in blocks] == ["sh", "yaml", "sh"]
    agent, rules = blocks[0][1].strip().splitlines()
    check, query = blocks[2][1].strip().splitlines()
    return Steps(agent, rules, blocks[1][1], check, query)


@pytest.fixture
def shell(tmp_path: Path) -> dict[str, str]:
    """An environment in which the page's `.venv/bin` is the interpreter of the tests and the tree under test."""
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name, arguments in (("python", ""), ("windowpane", " -m windowpane")):
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}"{arguments} "$@"\n')
        program.chmod(0o755)
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def output_of(command: str, *, folder: Path, env: dict[str, str]) -> str:
    """Return the output of a command of the page; a failing command fails the test with its output."""
    done = subprocess.run(
        ["/bin/sh", "-ec", command], check=False, cwd=folder, env=env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture
def followed(
    steps: Steps, shell: dict[str, str], tmp_path: Path, require_server
) -> Iterator[tuple[Steps, Ports, dict[str, str]]]:
    """Everything up to the last block done, with the two servers that are there already beside it."""
    ports = Ports(port(), port(), port())
    assert steps.agent.endswith(" &"), "the agent goes on in the background"
    agent = f"cd {tmp_path} && exec {ports.moved(steps.agent.removesuffix('&'))} --pace 0.05"
    ready = f"http://127.0.0.1:{ports.exporter}/healthz"
    with ExitStack() as running:
        running.enter_context(
            process(["/bin/sh", "-ec", agent], ready=ready, log=tmp_path / "agent.log", env=shell)
        )
        output_of(steps.rules, folder=tmp_path, env=shell)
        written = {**EXISTING, **yaml.safe_load(ports.moved(steps.configuration))}
        (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(written))
        shutil.copy(GRAFANA / "alertmanager" / "alertmanager.yml", tmp_path)
        for command, number in (
            ([
                require_server("prometheus-alertmanager"), f"--config.file={tmp_path / 'alertmanager.yml'}",
                f"--storage.path={tmp_path / 'am'}", f"--web.listen-address=127.0.0.1:{ports.alertmanager}",
                "--cluster.listen-address=",
            ], ports.alertmanager),
            ([
                require_server("prometheus"), f"--config.file={tmp_path / 'prometheus.yml'}",
                f"--storage.tsdb.path={tmp_path / 'data'}", f"--web.listen-address=127.0.0.1:{ports.prometheus}",
            ], ports.prometheus),
        ):  # fmt: skip
            address, log = f"http://127.0.0.1:{number}/-/ready", tmp_path / f"{number}.log"
            running.enter_context(process(command, ready=address, log=log))
        yield steps, ports, shell


@pytest.mark.server
def test_the_section_can_be_followed_to_the_letter(
    followed: tuple[Steps, Ports, dict[str, str]], tmp_path: Path, require_server
) -> None:
    require_server("promtool")
    require_server("curl")
    steps, ports, shell = followed

    assert "SUCCESS" in output_of(steps.check, folder=tmp_path, env=shell)

    def answered() -> list[dict[str, object]]:
        answer = json.loads(output_of(ports.moved(steps.query), folder=tmp_path, env=shell))
        assert answer["status"] == "success"
        return list(answer["data"]["result"])

    agents = {str(series["metric"]["agent"]) for series in wait_for(answered, "an answer")}  # type: ignore[index]
    alerts = f"http://127.0.0.1:{ports.alertmanager}/api/v2/alerts"
    match = wait_for(lambda: json.loads(get(alerts) or "[]"), "an alert in Alertmanager")

    assert any(agent.startswith("worker-") for agent in agents)
    assert all(one["labels"]["alertname"].startswith(("ContextWindow", "Windowpane")) for one in match)
    assert {one["labels"]["severity"] for one in match} <= {"info", "warning", "critical"}
