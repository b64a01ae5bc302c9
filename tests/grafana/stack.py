"""Prometheus, Alertmanager and the inbox as processes, with the shipped configuration and free ports."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
GRAFANA = ROOT / "grafana"
PATIENCE_SECONDS = 60.0


def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def get(url: str, *, token: str | None = None) -> str | None:
    """The body of an answer, or None while it fails."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=10) as response:
            return response.read().decode()
    except OSError:
        return None


def wait_for(condition: Callable[[], Any], what: str, *, seconds: float = PATIENCE_SECONDS) -> Any:
    """Wait until *condition* is true and return its value."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > deadline:
            pytest.fail(f"{what} did not come within {seconds:.0f} s")
        time.sleep(0.05)
    return value


@contextmanager
def process(
    command: Sequence[str | Path], *, ready: str, log: Path, env: dict[str, str] | None = None
) -> Iterator[Path]:
    """Run a program until the block ends; *ready* is an address that answers when it can be used."""
    with log.open("wb") as output:
        running = subprocess.Popen(
            [str(part) for part in command], stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=env
        )
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while get(ready) is None:
            if running.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"{command[0]} did not start:\n{log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.05)
        yield log
    finally:
        running.terminate()
        try:
            running.wait(timeout=10)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait(timeout=10)


_CONFINE = """
while [ "$1" != -- ]; do mount --bind "$1" "$1" && kept="$kept $1 "; shift; done; shift
while read -r _ _ _ _ folder _; do
    case "$kept" in *" $folder "*) ;; *) mount -o remount,bind,ro "$folder" 2>/dev/null;; esac
done < /proc/self/mountinfo
cd / && exec setpriv --no-new-privs --bounding-set=-all --inh-caps=-all "$@"
"""


def confined(command: Sequence[str | Path], *writable: Path) -> list[str]:
    """A command that can write to these folders only and has no capability, where this host can confine it."""
    unshare = ["unshare", "--mount", "--map-root-user"]
    try:
        able = subprocess.run([*unshare, "setpriv", "true"], check=False, capture_output=True).returncode == 0
    except OSError:
        able = False
    folders = [str(folder) for folder in writable]
    parts = [str(part) for part in command]
    return [*unshare, "sh", "-c", _CONFINE, "sh", *folders, "--", *parts] if able else parts


class Prometheus:
    """A running Prometheus and its API."""

    def __init__(self, url: str) -> None:
        self.url = url

    def api(self, path: str, **parameters: str) -> Any:
        """The data of an answer. Fails the test with Prometheus's own words where it refuses."""
        url = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=30) as response:
                return json.load(response)["data"]
        except urllib.error.HTTPError as error:
            pytest.fail(f"{parameters}: {error.read().decode()}")

    def query(self, expression: str) -> list[dict[str, Any]]:
        return self.api("query", query=expression)["result"]

    def query_range(self, expression: str, *, seconds: int) -> list[dict[str, Any]]:
        now = time.time()
        return self.api("query_range", query=expression, start=f"{now - seconds}", end=f"{now}", step="1")[
            "result"
        ]


@contextmanager
def prometheus(
    folder: Path,
    program: Path,
    *,
    exporter: str,
    alertmanager: str = "127.0.0.1:1",
    base: str = "prometheus.yml",
) -> Iterator[Prometheus]:
    """Prometheus with a shipped file: only addresses and intervals are other."""
    configuration = folder / "prometheus"
    shutil.copytree(GRAFANA / "prometheus", configuration)
    shipped = (configuration / base).read_text()
    if base == "prometheus.yml":
        (folder / "token").write_text("not checked")
        changed = shipped.replace("/run/windowpane/token", str(folder / "token"))
        changed = changed.replace("agent:9464", exporter).replace("alertmanager:9093", alertmanager)
        changed = changed.replace("_interval: 15s", "_interval: 1s")
    else:
        changed = shipped.replace("127.0.0.1:9464", exporter).replace("interval: 30s", "interval: 1s")
        changed = f"global: {{scrape_interval: 1s}}\n{changed}"
    assert exporter in changed
    (configuration / base).write_text(changed)
    address = f"127.0.0.1:{port()}"
    command = [
        program, f"--config.file={configuration / base}", f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={address}", f"--web.user-assets={configuration / 'assets'}",
    ]  # fmt: skip
    with process(command, ready=f"http://{address}/-/ready", log=folder / "prometheus.log"):
        yield Prometheus(f"http://{address}")


@contextmanager
def alertmanager(folder: Path, program: Path, *, inbox: str) -> Iterator[str]:
    """Alertmanager with the shipped routing: only the inbox's address and the waiting times are other."""
    shipped = (GRAFANA / "alertmanager" / "alertmanager.yml").read_text()
    changed = shipped.replace("inbox:9095", inbox)
    for time_of in ("group_wait", "group_interval"):
        changed = "\n".join(
            line.split(time_of)[0] + f"{time_of}: 1s" if f"{time_of}:" in line else line
            for line in changed.splitlines()
        )
    configuration = folder / "alertmanager.yml"
    configuration.write_text(changed)
    address = f"127.0.0.1:{port()}"
    command = [
        program, f"--config.file={configuration}", f"--storage.path={folder / 'alertmanager'}",
        f"--web.listen-address={address}", "--cluster.listen-address=",
    ]  # fmt: skip
    with process(command, ready=f"http://{address}/-/ready", log=folder / "alertmanager.log"):
        yield address


@contextmanager
def inbox(folder: Path) -> Iterator[tuple[str, Path]]:
    """The shipped inbox: its address, and the file its lines go to."""
    address = f"127.0.0.1:{(number := port())}"
    command = [sys.executable, "-I", GRAFANA / "alertmanager" / "inbox.py", "--port", str(number)]
    with process(command, ready=f"http://{address}/", log=folder / "inbox.log") as log:
        yield address, log
