"""The copier beside the store: it continues after ClickHouse or its own process was killed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from urllib.request import urlopen

from tests.servers.clickhouse import PASSWORD, USER
from tests.store.clickhouse.copies import assert_equal

from windowpane.effects import worker
from windowpane.store.clickhouse.copier import Copier
from windowpane.store.clickhouse.schema import Schema
from windowpane.store.clickhouse.store_copy import StoreCopy

PATIENCE_SECONDS = 60.0


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_copy_continues_when_the_server_is_back(
    store, make_session, clickhouse_server, clickhouse, monkeypatch
):
    monkeypatch.setattr(worker, "LONGEST_PAUSE_SECONDS", 0.2)
    monkeypatch.setattr(worker, "FIRST_PAUSE_SECONDS", 0.05)
    store.append(make_session("s1"))
    copier = Copier(StoreCopy(store, clickhouse, Schema(clickhouse.database)), poll_seconds=0.05)
    copier.start()
    wait_for(lambda: copier.lag_events == 0)

    clickhouse_server.kill()
    later = make_session("s2")
    store.append(later)
    wait_for(lambda: bool(copier.failure) and copier.lag_events == len(later))
    down = copier.health()
    clickhouse_server.start()
    wait_for(lambda: copier.lag_events == 0 and not copier.failure)
    copier.close()

    assert clickhouse_server.url in str(down["failure"])
    assert copier.health() == {"copied_to_seq": store.newest_seq(), "lag_events": 0}
    assert_equal(store, clickhouse)


def test_serve_copies_and_continues_after_it_was_killed(store, make_session, clickhouse_server, clickhouse):
    store.append(make_session("s1"))
    first = Serve(store.path, clickhouse_server.url, clickhouse.database)
    first.wait_until_copied(store.newest_seq())
    metrics = first.read("/metrics")
    first.process.send_signal(signal.SIGKILL)
    first.process.wait()
    store.append(make_session("s2"))

    second = Serve(store.path, clickhouse_server.url, clickhouse.database)
    second.wait_until_copied(store.newest_seq())
    second.process.send_signal(signal.SIGINT)

    assert second.process.wait(timeout=30) == 0
    assert re.search(r"^windowpane_clickhouse_lag_events 0\.0$", metrics, re.MULTILINE)
    assert_equal(store, clickhouse)


class Serve:
    """`windowpane serve --clickhouse` as a person starts it."""

    def __init__(self, store: object, url: str, database: str) -> None:
        environment = {
            **os.environ,
            "WINDOWPANE_CLICKHOUSE_USER": USER,
            "WINDOWPANE_CLICKHOUSE_PASSWORD": PASSWORD,
            "WINDOWPANE_CLICKHOUSE__DATABASE": database,
        }
        command = ["serve", "--store", str(store), "--port", "0", "--clickhouse", url]
        self.process = subprocess.Popen(
            [sys.executable, "-u", "-m", "windowpane", *command],
            env=environment, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        lines: list[str] = []
        while not lines or not lines[-1].startswith("copying to ClickHouse"):
            lines.append(self.process.stdout.readline())
            assert lines[-1], lines
        (self.url,) = re.findall(r"metrics on (http://\S+)/metrics", "".join(lines))
        self.process.stdout.close()

    def read(self, path: str) -> str:
        with urlopen(self.url + path, timeout=10) as response:
            return str(response.read().decode())

    def wait_until_copied(self, seq: int) -> None:
        wait_for(lambda: json.loads(self.read("/healthz"))["clickhouse"].get("copied_to_seq") == seq)
