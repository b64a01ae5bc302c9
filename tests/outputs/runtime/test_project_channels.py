"""The alerts of a project go to its channels: by its own statement, by the store, or by the setting."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from windowpane.alerts.delivery.notifier import Notifier
from windowpane.config.loading import load_config
from windowpane.core.events import AlertFired, Event, EventContext, SessionDescribed, TurnStarted
from windowpane.outputs.http.local_dashboard import announced
from windowpane.outputs.runtime.notifier import configured_notifier
from windowpane.store.embedded import SqliteStore


@contextmanager
def alertmanager(received: list[dict[str, Any]]) -> Iterator[str]:
    """Accept alerts while the block runs, and collect them."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.extend(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"alertmanager://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def event(session: str, data: AlertFired | SessionDescribed | TurnStarted, n: int = 0) -> Event:
    return Event(EventContext(session, "agent", "gpt-5", 3, 1, "live", f"{session}/stream"), n, 1e9, data)


def fire(notifier: Notifier, session: str) -> None:
    notifier.write([event(session, AlertFired("utilization", "critical", 3, 0.95, 0.9, "full"), 7)])


@pytest.mark.parametrize("setting", ["", "shop"])
def test_the_alerts_of_a_project_go_to_its_channels(tmp_path: Path, setting: str) -> None:
    received: list[dict[str, Any]] = []
    store = SqliteStore(tmp_path / "windowpane.db")
    store.append([event("stored", TurnStarted())])
    store.assign_project("stored", "shop")
    with alertmanager(received) as url:
        channel = [{"url": url}]
        settings = {
            "project": setting,
            "notify": {"channels": channel},
            "projects": {"shop": {"channels": channel}, "quiet": {"channels": []}, "docs": {}},
        }
        config = load_config(environ={}, arguments=settings)
        assert [one.url.get_secret_value() for one in config.channels()] == [url, url]
        notifier = configured_notifier(config, outbox=None, emit=lambda _batch: None, store=store)
        for session, project in (("stated", "shop"), ("silent", "quiet"), ("plain", "docs"), ("odd", "x{y='z'}")):
            notifier.write([event(session, SessionDescribed(project=project))])
        for session in ("stated", "stored", "silent", "plain", "odd", "unknown"):
            fire(notifier, session)
        notifier.close()
    store.close()

    labels = {one["labels"]["session"]: one["labels"].get("project") for one in received}
    assert labels == {
        "stated": "shop", "stored": "shop", "plain": None, "odd": None, "unknown": setting or None,
    }  # fmt: skip
    assert len(received) == len(labels)


@pytest.mark.parametrize("public_url", [None, "https://agents.example/windowpane"])
def test_an_alert_links_to_the_dashboard(tmp_path: Path, public_url: str | None) -> None:
    received: list[dict[str, Any]] = []
    store, local = tmp_path / "windowpane.db", "http://127.0.0.1:8501"
    with alertmanager(received) as url:
        settings = {
            "store": {"path": str(store)},
            "notify": {"channels": [{"url": url}]},
            "public_url": public_url,
        }
        config = load_config(environ={}, arguments=settings)
        for session, running in (("before", None), ("beside", local)):
            with announced(store, running) if running else nullcontext():
                notifier = configured_notifier(config, outbox=None, emit=lambda _batch: None)
                fire(notifier, session)
                notifier.close()

    links = {one["labels"]["session"]: one.get("generatorURL") for one in received}
    if public_url is None:
        assert links == {
            "before": None,
            "beside": f"{local}/session?session=beside&alert=utilization%3A3&at=1000000000.0",
        }
    else:
        assert all(str(link).startswith(f"{public_url}/session?") for link in links.values())
