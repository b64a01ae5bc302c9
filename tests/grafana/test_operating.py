"""The operating page followed literally: its snippets are valid, its ways of running work."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from stack import GRAFANA, PATIENCE_SECONDS, get, port, process, prometheus, wait_for

from windowpane.alerts.prometheus import kubernetes_objects
from windowpane.cli import main

AGENT = """
import sys, windowpane

def turn(agent):
    with windowpane.ContextWindowManager(agent=agent, model="gpt-4o", limit_tokens=16_384) as window:
        window.add_user("Say hello to " + agent)
        window.on_turn_start()
        window.on_turn_end({
            "object": "chat.completion", "model": "gpt-4o",
            "choices": [
                {"index": 0, "message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}
            ],
            "usage": {"prompt_tokens": 12, "completion_tokens": 3},
        })
        if sys.argv[2] == "serve":
            sys.stdin.read()  # a worker that goes on

windowpane.start(store=sys.argv[1], port=0)
"""
JOB = AGENT + 'turn("job")\n'
SERVER = (
    AGENT
    + """
import os
workers = []
for name in ("worker-a", "worker-b"):
    pid = os.fork()
    if pid == 0:
        turn(name)
        windowpane.stop()
        os._exit(0)
    workers.append(pid)
for pid in workers:
    os.waitpid(pid, 0)
"""
)


@pytest.fixture(scope="module")
def page(root: Path) -> str:
    return (root / "docs" / "operating.md").read_text()


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def snippets(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


def test_every_scrape_configuration_is_valid(page: str, tmp_path: Path, run) -> None:
    snippet_texts = [text for text in snippets(page, "yaml") if text.startswith("scrape_configs:")]
    assert len(snippet_texts) == 3
    for number, text in enumerate(snippet_texts):
        path = tmp_path / f"{number}.yml"
        path.write_text(text)
        checked = run("promtool", "check", "config", path)
        assert checked.returncode == 0, checked.stdout + checked.stderr
        assert yaml.safe_load(text)["scrape_configs"][0]["job_name"] == "windowpane"


def test_the_discovery_file_is_what_the_page_shows(page: str) -> None:
    shipped = yaml.safe_load((GRAFANA / "prometheus" / "http-sd.yml").read_text())

    assert shipped in [yaml.safe_load(text) for text in snippets(page, "yaml")]


def test_the_pod_is_selected_by_the_pod_monitor(page: str) -> None:
    pod = next(one for text in snippets(page, "yaml") if (one := yaml.safe_load(text)).get("kind") == "Pod")
    monitor = kubernetes_objects()[0]["spec"]
    container = pod["spec"]["containers"][0]

    assert monitor["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    assert monitor["podMetricsEndpoints"][0]["port"] in [one["name"] for one in container["ports"]]
    assert all(re.fullmatch(r"WINDOWPANE_[A-Z_]+", one["name"]) for one in container["env"])


def test_pod_and_monitor_use_the_same_token(page: str) -> None:
    pod = next(one for text in snippets(page, "yaml") if (one := yaml.safe_load(text)).get("kind") == "Pod")
    variables = {one["name"]: one for one in pod["spec"]["containers"][0]["env"]}
    reference = variables["WINDOWPANE_BEARER_TOKEN"]["valueFrom"]["secretKeyRef"]
    endpoint = kubernetes_objects()[0]["spec"]["podMetricsEndpoints"][0]

    assert endpoint["authorization"] == {"credentials": reference}
    assert f"kubectl create secret generic {reference['name']} " in page
    assert f"--from-literal={reference['key']}=" in page


def test_every_command_on_the_page_exists(page: str) -> None:
    lines = [
        line for text in snippets(page, "sh") for line in text.splitlines() if line.startswith("windowpane ")
    ]
    assert len(lines) >= 4
    for line in lines:
        command: Any = main
        arguments = iter(shlex.split(line)[1:])
        for word in arguments:
            if not isinstance(command, click.Group):
                break
            command = command.get_command(click.Context(command), word)
            assert command is not None, line
        options = {option for parameter in command.params for option in parameter.opts}
        assert set(re.findall(r"(?<= )--[a-z-]+", line)) <= options, line


@pytest.fixture
def serve(tmp_path: Path, environment: dict[str, str]) -> Iterator[str]:
    """`windowpane serve` on the store of the test, at a separate address."""
    address = f"127.0.0.1:{(number := port())}"
    command = [
        sys.executable,
        "-m",
        "windowpane",
        "serve",
        "--store",
        tmp_path / "windowpane.db",
        "--port",
        number,
    ]
    ready = f"http://{address}/healthz"
    with process(command, ready=ready, log=tmp_path / "serve.log", env=environment):
        yield address


@pytest.mark.server
def test_a_short_lived_job_is_counted_after_it_ended(
    tmp_path: Path, environment: dict[str, str], serve: str
) -> None:
    for jobs in (1, 2):
        done = subprocess.run(
            [sys.executable, "-c", JOB, tmp_path / "windowpane.db", "end"],
            check=False,
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )
        assert done.returncode == 0, done.stderr
        expected = f'context_window_turns_total{{agent="job",model="gpt-4o"}} {jobs}.0'
        wait_for(lambda line=expected: line in (get(f"http://{serve}/metrics") or ""), expected)


@pytest.mark.server
def test_workers_of_a_pre_fork_server_are_discovered_and_scraped(
    tmp_path: Path, environment: dict[str, str], serve: str, require_server
) -> None:
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, tmp_path / "windowpane.db", "serve"],
        env=environment,
        stdin=subprocess.PIPE,
    )
    try:
        wait_for(lambda: len(workers(serve)) >= 2, "two workers in /sd")
        (tmp_path / "scraped").mkdir()
        with prometheus(
            tmp_path / "scraped", require_server("prometheus"), exporter=serve, base="http-sd.yml"
        ) as scraper:
            query = 'count by (agent) (context_window_turns_total{job="windowpane"})'

            def seen() -> set[str]:
                return {series["metric"]["agent"] for series in scraper.query(query)}

            wait_for(lambda: seen() == {"worker-a", "worker-b"}, "both workers in Prometheus")
            counted = scraper.query("sum(context_window_turns_total)")
            assert counted[0]["value"][1] == "2"
    finally:
        assert server.stdin is not None
        server.stdin.close()
        server.wait(timeout=30)
    wait_for(lambda: workers(serve) == set(), "an empty list once the workers are gone")


def workers(serve: str) -> set[str]:
    """Addresses that `/sd` lists."""
    listed = json.loads(get(f"http://{serve}/sd") or "[]")
    return {address for group in listed for address in group["targets"]}
